/* The body of state_f32_<tier>.c. */
#include "backends/cpu/kernels/state/state.h"

#include "backends/cpu/kernels/vec/vec_math.h"
#include "base/fault.h"

enum { VECTORS = 4 };

static inline vf load_part(const float *p, size_t c, size_t vectors, size_t tail) {
  return c + 1 < vectors || tail == VEC_W ? v_load(p + c * VEC_W) : v_loadn(p + c * VEC_W, tail);
}
static inline void store_part(float *p, vf v, size_t c, size_t vectors, size_t tail) {
  if (c + 1 < vectors || tail == VEC_W)
    v_store(p + c * VEC_W, v);
  else
    v_storen(p + c * VEC_W, v, tail);
}

/* Some vectors of columns, the last one with `tail` lanes; the first two are constants where it is inlined.
 */
static inline __attribute__((always_inline)) void columns_of(const hn_linear_token *t, size_t at,
                                                             size_t vectors, bool decays, size_t tail) {
  vf v[VECTORS], sum[VECTORS];
  float *s = t->s + at;
  const float *from = t->from ? t->from + at : s;
  const ptrdiff_t from_row = t->from ? t->from_row : t->s_row;
  for (size_t c = 0; c < vectors; c++) v[c] = load_part(t->v + at, c, vectors, tail);
  if (t->beta) {
    for (size_t c = 0; c < vectors; c++) sum[c] = v_zero();
    for (size_t i = 0; i < t->d_k; i++) {
      const vf k = v_set1(decays ? t->decay[i] * t->k[i] : t->k[i]);
      for (size_t c = 0; c < vectors; c++)
        sum[c] = v_fma(k, load_part(from + (ptrdiff_t)i * from_row, c, vectors, tail), sum[c]);
    }
    const vf beta = v_set1(*t->beta);
    for (size_t c = 0; c < vectors; c++) v[c] = v_mul(beta, v_sub(v[c], sum[c]));
  }
  for (size_t c = 0; c < vectors; c++) sum[c] = v_zero();
  for (size_t i = 0; i < t->d_k; i++) {
    const float *old = from + (ptrdiff_t)i * from_row;
    float *row = s + (ptrdiff_t)i * t->s_row;
    const vf k = v_set1(t->k[i]), q = v_set1(t->q[i]), d = v_set1(decays ? t->decay[i] : 1.0f);
    for (size_t c = 0; c < vectors; c++) {
      vf x = load_part(old, c, vectors, tail);
      x = v_fma(k, v[c], decays ? v_mul(d, x) : x);
      store_part(row, x, c, vectors, HN_FAULT("state_tail") && tail < VEC_W ? tail - 1 : tail);
      sum[c] = v_fma(q, x, sum[c]);
    }
  }
  const vf scale = v_set1(t->scale);
  for (size_t c = 0; c < vectors; c++) store_part(t->y + at, v_mul(sum[c], scale), c, vectors, tail);
  for (size_t j = 1; j < t->queries; j++) {
    const float *q = t->q + (ptrdiff_t)j * t->q_row;
    for (size_t c = 0; c < vectors; c++) sum[c] = v_zero();
    for (size_t i = 0; i < t->d_k; i++)
      for (size_t c = 0; c < vectors; c++)
        sum[c] = v_fma(v_set1(q[i]), load_part(s + (ptrdiff_t)i * t->s_row, c, vectors, tail), sum[c]);
    for (size_t c = 0; c < vectors; c++)
      store_part(t->y + (ptrdiff_t)j * t->y_row + at, v_mul(sum[c], scale), c, vectors, tail);
  }
}

static void linear(const hn_linear_token *t) {
  size_t at = 0;
  for (; at + VECTORS * VEC_W <= t->columns; at += VECTORS * VEC_W)
    if (t->decay)
      columns_of(t, at, VECTORS, true, VEC_W);
    else
      columns_of(t, at, VECTORS, false, VEC_W);
  for (; at < t->columns; at += VEC_W) {
    const size_t tail = t->columns - at < VEC_W ? t->columns - at : VEC_W;
    if (t->decay)
      columns_of(t, at, 1, true, tail);
    else
      columns_of(t, at, 1, false, tail);
  }
}

static void exponential(float *y, const float *x, size_t n) {
  for (size_t i = 0; i < n; i += VEC_W) {
    const size_t take = n - i < VEC_W ? n - i : VEC_W;
    v_storen(y + i, v_exp(v_loadn(x + i, take)), take);
  }
}

static inline __attribute__((always_inline)) void
causal_of(float *y, const float *x, size_t n, const float *w, size_t taps, float bias, bool swish) {
  for (size_t i = 0; i < n; i += VEC_W) {
    const size_t take = n - i < VEC_W ? n - i : VEC_W;
    vf sum = v_set1(bias);
    for (size_t k = 0; k < taps; k++)
      sum = v_fma(v_set1(w[k]), take == VEC_W ? v_load(x + i + k) : v_loadn(x + i + k, take), sum);
    if (swish) sum = v_mul(sum, v_sigmoid(sum));
    if (take == VEC_W)
      v_store(y + i, sum);
    else
      v_storen(y + i, sum, HN_FAULT("causal_tail") ? take - 1 : take);
  }
}

static void causal(float *y, const float *x, size_t n, const float *w, size_t taps, float bias, bool swish) {
  if (taps == 4 && swish)
    causal_of(y, x, n, w, 4, bias, true);
  else
    causal_of(y, x, n, w, taps, bias, swish);
}

static const hn_state_ops table = {.linear = linear, .exp = exponential, .causal = causal};
