/* The body of attention_f32_<tier>.c. */
#include "backends/cpu/kernels/attention/attention.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/vec/vec_math.h"
#include "base/fault.h"

#include "backends/cpu/kernels/attention/attention_masks.inc"

/* t into x; returns its maximum and *top's. */
static float scores(float *x, size_t n, float scale, const hn_mask_row *mask, uint32_t n_masks, float top) {
  const vf s = v_set1(scale), lowest = v_set1(-__builtin_inff());
  vf m0 = lowest, m1 = lowest;
  size_t i = 0;
  if (n_masks == 0) {
    for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
      const vf a = v_mul(v_load(x + i), s), b = v_mul(v_load(x + i + VEC_W), s);
      v_store(x + i, a);
      v_store(x + i + VEC_W, b);
      m0 = v_max(m0, a);
      m1 = v_max(m1, b);
    }
  } else if (n_masks == 1 && mask->kind == HN_MASK_ADD && mask->step == 1) {
    const float *p = mask->at;
    const vf f = v_set1(mask->value);
    for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
      const vf a = v_fma(v_load(p + i), f, v_mul(v_load(x + i), s)),
               b = v_fma(v_load(p + i + VEC_W), f, v_mul(v_load(x + i + VEC_W), s));
      v_store(x + i, a);
      v_store(x + i + VEC_W, b);
      m0 = v_max(m0, a);
      m1 = v_max(m1, b);
    }
  }
  for (; i < n; i += VEC_W) {
    const size_t k = n - i < VEC_W ? n - i : VEC_W;
    vf t = v_mul(v_loadn(x + i, k), s);
    for (uint32_t j = 0; j < n_masks; j++)
      if (k == VEC_W || !HN_FAULT("attention_mask_tail")) t = masked(t, &mask[j], i, k);
    v_storen(x + i, t, k);
    m0 = v_max(m0, v_sel(v_first(k), t, lowest));
  }
  return v_hmax(v_max(v_max(m0, m1), v_set1(top)));
}

static float row(float *x, size_t n, float scale, const hn_mask_row *mask, uint32_t n_masks, float *top) {
  const float most = scores(x, n, scale, mask, n_masks, *top);
  *top = most;
  /* Nothing may be seen so far: no weight, and no NaN that would stay when later blocks have some. */
  const vf m = v_set1(most == -__builtin_inff() ? 0.0f : most);
  vf s0 = v_zero(), s1 = v_zero();
  size_t i = 0;
  for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
    const vf e0 = v_exp_nonpos(v_sub(v_load(x + i), m)), e1 = v_exp_nonpos(v_sub(v_load(x + i + VEC_W), m));
    v_store(x + i, e0);
    v_store(x + i + VEC_W, e1);
    s0 = v_add(s0, e0);
    s1 = v_add(s1, e1);
  }
  s0 = v_add(s0, s1);
  while (i < n) {
    const size_t k = n - i < VEC_W ? n - i : VEC_W;
    const vf e = v_exp_nonpos(v_sub(v_loadn(x + i, k), m));
    v_storen(x + i, e, k);
    if (!(k < VEC_W && HN_FAULT("attention_tail_sum"))) s0 = v_add(s0, v_sel(v_first(k), e, v_zero()));
    i += k;
  }
  return v_hsum(s0);
}

static void scale(float *x, size_t n, float factor) {
  const vf f = v_set1(factor);
  size_t i = 0;
  for (; i + VEC_W <= n; i += VEC_W) v_store(x + i, v_mul(v_load(x + i), f));
  if (i < n) v_storen(x + i, v_mul(v_loadn(x + i, n - i), f), n - i);
}

static const hn_attention_ops table = {.row = row, .scale = scale};
