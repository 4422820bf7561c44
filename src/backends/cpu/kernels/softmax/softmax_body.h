/* The body of softmax_f32_<tier>.c. */
#include "backends/cpu/kernels/softmax/softmax.h"

#include <math.h>

#include "backends/cpu/kernels/vec/vec_math.h"
#include "base/fault.h"

/* t = scale x + mask into dst (skipped when there is nothing to do); returns the maximum. */
static float scaled_max(float *dst, const float *src, size_t n, float scale, const float *mask) {
  const vf s = v_set1(scale), lowest = v_set1(-__builtin_inff());
  vf m0 = lowest, m1 = lowest;
  size_t i = 0;
  if (!mask && scale == 1.0f) {
    for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
      m0 = v_max(m0, v_load(src + i));
      m1 = v_max(m1, v_load(src + i + VEC_W));
    }
    for (; i < n; i += VEC_W) {
      const size_t k = n - i < VEC_W ? n - i : VEC_W;
      m0 = v_max(m0, v_sel(v_first(k), v_loadn(src + i, k), lowest));
    }
  } else {
    for (; i < n; i += VEC_W) {
      const size_t k = n - i < VEC_W ? n - i : VEC_W;
      const vf x = v_loadn(src + i, k), t = mask ? v_fma(x, s, v_loadn(mask + i, k)) : v_mul(x, s);
      v_storen(dst + i, t, k);
      m0 = v_max(m0, v_sel(v_first(k), t, lowest));
    }
  }
  return v_hmax(v_max(m0, m1));
}

static void row(float *dst, const float *src, size_t n, float scale, const float *mask, bool log) {
  const float top = scaled_max(dst, src, n, scale, mask);
  if (mask || scale != 1.0f) src = dst;
  const vf m = v_set1(top);
  vf s0 = v_zero(), s1 = v_zero();
  size_t i = 0;
  /* The logarithmic form keeps t in dst: it is needed once more. */
  for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
    const vf e0 = v_exp_weight(v_sub(v_load(src + i), m)),
             e1 = v_exp_weight(v_sub(v_load(src + i + VEC_W), m));
    if (!log) {
      v_store(dst + i, e0);
      v_store(dst + i + VEC_W, e1);
    }
    s0 = v_add(s0, e0);
    s1 = v_add(s1, e1);
  }
  s0 = v_add(s0, s1);
  while (i < n) {
    const size_t k = n - i < VEC_W ? n - i : VEC_W;
    const vf e = v_exp_weight(v_sub(v_loadn(src + i, k), m));
    if (!log) v_storen(dst + i, e, k);
    if (!(k < VEC_W && HN_FAULT("softmax_tail_sum"))) s0 = v_add(s0, v_sel(v_first(k), e, v_zero()));
    i += k;
  }
  const float sum = v_hsum(s0);
  const vf factor = v_set1(log ? logf(sum) : 1.0f / sum);
  for (i = 0; i + VEC_W <= n; i += VEC_W)
    v_store(dst + i, log ? v_sub(v_sub(v_load(src + i), m), factor) : v_mul(v_load(dst + i), factor));
  if (i < n) {
    const size_t k = n - i;
    v_storen(dst + i, log ? v_sub(v_sub(v_loadn(src + i, k), m), factor) : v_mul(v_loadn(dst + i, k), factor),
             k);
  }
}

static void columns(float *dst, const float *src, size_t n, size_t cols, ptrdiff_t ld, bool log) {
  for (size_t c = 0; c < cols; c += VEC_W) {
    const size_t k = cols - c < VEC_W ? cols - c : VEC_W;
    const float *p = src + c;
    float *q = dst + c;
    vf m = v_set1(-__builtin_inff()), s = v_zero();
    for (size_t i = 0; i < n; i++) m = v_max(m, v_loadn(p + (ptrdiff_t)i * ld, k));
    for (size_t i = 0; i < n; i++) {
      const vf e = v_exp_weight(v_sub(v_loadn(p + (ptrdiff_t)i * ld, k), m));
      if (!log) v_storen(q + (ptrdiff_t)i * ld, e, k);
      s = v_add(s, e);
    }
    const vf factor = log ? v_log(s) : v_div(v_set1(1.0f), s);
    for (size_t i = 0; i < n; i++) {
      const ptrdiff_t at = (ptrdiff_t)i * ld;
      v_storen(q + at, log ? v_sub(v_sub(v_loadn(p + at, k), m), factor) : v_mul(v_loadn(q + at, k), factor),
               k);
    }
  }
}

static const struct hn_softmax_ops table = {.row = row, .columns = columns};
