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

static void only_scores(float *x, size_t n, float scale, const hn_mask_row *mask, uint32_t n_masks) {
  scores(x, n, scale, mask, n_masks, 0);
}

/* Masks alone, of k <= VEC_W keys from i on. */
static inline vf mask_alone(const hn_mask_row *mask, uint32_t n_masks, size_t i, size_t k) {
  vf t = v_zero();
  for (uint32_t j = 0; j < n_masks; j++) t = masked(t, &mask[j], i, k);
  return t;
}

static float most(size_t n, const hn_mask_row *mask, uint32_t n_masks) {
  const vf lowest = v_set1(-__builtin_inff()), highest = v_set1(__builtin_inff());
  vf m0 = lowest, m1 = lowest;
  size_t i = 0;
  if (n_masks == 1 && mask->kind == HN_MASK_ADD && mask->step == 1) {
    const float *p = mask->at;
    const vf f = v_set1(mask->value);
    for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
      const vf a = v_mul(v_load(p + i), f), b = v_mul(v_load(p + i + VEC_W), f);
      m0 = v_max(m0, v_sel(v_eq(a, a), a, highest));
      m1 = v_max(m1, v_sel(v_eq(b, b), b, highest));
    }
  }
  for (; i < n; i += VEC_W) {
    const size_t k = n - i < VEC_W ? n - i : VEC_W;
    const vf t = mask_alone(mask, n_masks, i, k);
    m0 = v_max(m0, v_sel(v_first(k), v_sel(v_eq(t, t), t, highest), lowest));
  }
  return v_hmax(v_max(m0, m1));
}

/* Whether all of k keys from i on are below the limit; one: there is one mask, of numbers that are added. */
static inline bool all_below(const hn_mask_row *mask, uint32_t n_masks, size_t i, size_t k, vf limit,
                             bool one) {
  if (one && k == VEC_W) {
    const vf t = v_mul(v_load((const float *)mask->at + i), v_set1(mask->value));
    return !v_any(v_eq(v_sel(v_lt(t, limit), v_zero(), v_set1(1.0f)), v_set1(1.0f)));
  }
  const vf t = mask_alone(mask, n_masks, i, k);
  const vf above = v_sel(v_first(k), v_sel(v_lt(t, limit), v_zero(), v_set1(1.0f)), v_zero());
  return !v_any(v_eq(above, v_set1(1.0f)));
}

/* To whole vectors. */
static void within(size_t n, float limit, const hn_mask_row *mask, uint32_t n_masks, size_t *from,
                   size_t *end) {
  const vf least = v_set1(limit);
  const bool one = n_masks == 1 && mask->kind == HN_MASK_ADD && mask->step == 1;
  size_t i = 0, k = n;
  while (i < n && all_below(mask, n_masks, i, n - i < VEC_W ? n - i : VEC_W, least, one)) i += VEC_W;
  *from = i < n ? i : n;
  while (k > *from) {
    const size_t last = (k - 1) / VEC_W * VEC_W;
    if (!all_below(mask, n_masks, last, k - last, least, one)) break;
    k = last;
  }
  *end = k;
}

enum { SUMS = 4, PARTS = 2 };

/* `sums` rows of y, `parts` vectors of each, the last with `tail` lanes: constants where it is inlined. */
static inline __attribute__((always_inline)) void across_tile(float *y, ptrdiff_t y_ld, const float *x,
                                                              ptrdiff_t x_ld, const float *factor,
                                                              const float *sum, size_t heads, int sums,
                                                              int parts, size_t tail) {
  vf acc[SUMS][PARTS], in[PARTS];
  for (int o = 0; o < sums; o++)
    for (int p = 0; p < parts; p++) acc[o][p] = v_set1(sum[o]);
  for (size_t i = 0; i < heads - (HN_FAULT("attention_across_head") ? 1 : 0); i++, x += x_ld) {
    for (int p = 0; p < parts; p++)
      in[p] = tail == VEC_W || p + 1 < parts ? v_load(x + p * VEC_W) : v_loadn(x + p * VEC_W, tail);
    for (int o = 0; o < sums; o++) {
      const vf f = v_set1(factor[(size_t)o * heads + i]);
      for (int p = 0; p < parts; p++) acc[o][p] = v_fma(f, in[p], acc[o][p]);
    }
  }
  for (int o = 0; o < sums; o++)
    for (int p = 0; p < parts; p++)
      if (tail == VEC_W || p + 1 < parts)
        v_store(y + o * y_ld + p * VEC_W, acc[o][p]);
      else
        v_storen(y + o * y_ld + p * VEC_W, acc[o][p], tail);
}

static inline __attribute__((always_inline)) void across_rows(float *y, ptrdiff_t y_ld, const float *x,
                                                              ptrdiff_t x_ld, size_t n, const float *factor,
                                                              const float *sum, size_t heads, int sums) {
  size_t i = 0;
  for (; i + PARTS * VEC_W <= n; i += PARTS * VEC_W)
    across_tile(y + i, y_ld, x + i, x_ld, factor, sum, heads, sums, PARTS, VEC_W);
  for (; i < n; i += VEC_W)
    across_tile(y + i, y_ld, x + i, x_ld, factor, sum, heads, sums, 1, n - i < VEC_W ? n - i : VEC_W);
}

static void across(float *y, ptrdiff_t y_ld, const float *x, ptrdiff_t x_ld, size_t n, const float *factor,
                   const float *sum, size_t heads) {
  size_t o = 0;
  for (; o + SUMS <= heads; o += SUMS)
    across_rows(y + (ptrdiff_t)o * y_ld, y_ld, x, x_ld, n, factor + o * heads, sum + o, heads, SUMS);
  for (; o < heads; o++)
    across_rows(y + (ptrdiff_t)o * y_ld, y_ld, x, x_ld, n, factor + o * heads, sum + o, heads, 1);
}

static float row(float *x, size_t n, float scale, const hn_mask_row *mask, uint32_t n_masks, float *top) {
  const float most = scores(x, n, scale, mask, n_masks, *top);
  *top = most;
  /* Nothing may be seen so far: no weight, and no NaN that would stay when later blocks have some. */
  const vf m = v_set1(most == -__builtin_inff() ? 0.0f : most);
  vf s0 = v_zero(), s1 = v_zero();
  size_t i = 0;
  for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
    const vf e0 = v_exp_weight(v_sub(v_load(x + i), m)), e1 = v_exp_weight(v_sub(v_load(x + i + VEC_W), m));
    v_store(x + i, e0);
    v_store(x + i + VEC_W, e1);
    s0 = v_add(s0, e0);
    s1 = v_add(s1, e1);
  }
  s0 = v_add(s0, s1);
  while (i < n) {
    const size_t k = n - i < VEC_W ? n - i : VEC_W;
    const vf e = v_exp_weight(v_sub(v_loadn(x + i, k), m));
    v_storen(x + i, e, k);
    if (!(k < VEC_W && HN_FAULT("attention_tail_sum"))) s0 = v_add(s0, v_sel(v_first(k), e, v_zero()));
    i += k;
  }
  return v_hsum(s0);
}

#if VEC_W > 1
/* One row of `vectors` vectors, a constant where it is inlined, as is one: the mask is one of numbers that
 * are added. */
static inline __attribute__((always_inline)) void short_row(float *x, size_t n, vf s, const hn_mask_row *mask,
                                                            uint32_t n_masks, bool one, size_t from,
                                                            size_t end, float *top, float *sum,
                                                            size_t vectors) {
  const vf lowest = v_set1(-__builtin_inff());
  vf t[HN_ATTENTION_SHORT], most = v_set1(*top);
  for (size_t v = 0; v < vectors; v++) {
    const size_t i = v * VEC_W, k = v + 1 < vectors ? VEC_W : n - i;
    t[v] = v_mul(v_load(x + i), s);
    if (one) {
      const float *p = (const float *)mask->at + i;
      t[v] = v_fma(v + 1 < vectors ? v_load(p) : v_loadn(p, k), v_set1(mask->value), t[v]);
    } else {
      for (uint32_t j = 0; j < n_masks; j++) t[v] = masked(t[v], &mask[j], i, k);
    }
    if (v + 1 == vectors || end < n)
      t[v] = v_sel(v_first(end > i ? (end - i < VEC_W ? end - i : VEC_W) : 0), t[v], lowest);
    if (from > i) t[v] = v_sel(v_first(from - i < VEC_W ? from - i : VEC_W), lowest, t[v]);
    most = v_max(most, t[v]);
  }
  const float m = v_hmax(most);
  *top = m;
  const vf by = v_set1(m == -__builtin_inff() ? 0.0f : m);
  vf all = v_zero();
  for (size_t v = 0; v < vectors; v++) {
    const vf e = v_exp_weight(v_sub(t[v], by));
    v_store(x + v * VEC_W, e);
    all = v_add(all, e);
  }
  *sum = v_hsum(all);
}

static inline __attribute__((always_inline)) void short_rows(float *x, ptrdiff_t ld, size_t rows, size_t n,
                                                             vf s, const hn_mask_row *mask, uint32_t n_masks,
                                                             const int32_t *seen, float *top, float *sum,
                                                             size_t vectors) {
  const bool one = n_masks == 1 && mask->kind == HN_MASK_ADD && mask->step == 1;
  for (size_t r = 0; r < rows; r++, x += ld, mask += n_masks, seen += 2)
    if (one)
      short_row(x, n, s, mask, 1, true, (size_t)seen[0], (size_t)seen[1], top + r, sum + r, vectors);
    else if (n_masks)
      short_row(x, n, s, mask, n_masks, false, (size_t)seen[0], (size_t)seen[1], top + r, sum + r, vectors);
    else
      short_row(x, n, s, mask, 0, false, (size_t)seen[0], (size_t)seen[1], top + r, sum + r, vectors);
}

static void all_rows(float *x, ptrdiff_t ld, size_t rows, size_t n, float scale, const hn_mask_row *mask,
                     uint32_t n_masks, const int32_t *seen, float *top, float *sum) {
  const vf s = v_set1(scale);
  switch ((n + VEC_W - 1) / VEC_W) {
  case 1: short_rows(x, ld, rows, n, s, mask, n_masks, seen, top, sum, 1); break;
  case 2: short_rows(x, ld, rows, n, s, mask, n_masks, seen, top, sum, 2); break;
  case 3: short_rows(x, ld, rows, n, s, mask, n_masks, seen, top, sum, 3); break;
  default: short_rows(x, ld, rows, n, s, mask, n_masks, seen, top, sum, HN_ATTENTION_SHORT);
  }
}
#define SHORT .rows = all_rows
#else
#define SHORT .rows = NULL
#endif

static void scale(float *x, size_t n, float factor) {
  const vf f = v_set1(factor);
  size_t i = 0;
  for (; i + VEC_W <= n; i += VEC_W) v_store(x + i, v_mul(v_load(x + i), f));
  if (i < n) v_storen(x + i, v_mul(v_loadn(x + i, n - i), f), n - i);
}

/* As many sums as registers hold. */
enum { ROWS = 4, KEYS = 4, COLUMNS = VEC_W >= 16 ? 4 : 2 };

/* `rows` times `keys` dot products, both constants where it is inlined. */
static inline __attribute__((always_inline)) void dot_tile(float *score, ptrdiff_t score_ld, const float *q,
                                                           ptrdiff_t q_ld, const float *k, ptrdiff_t k_ld,
                                                           size_t depth, int rows, int keys) {
  vf sum[ROWS][KEYS], b[KEYS];
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < keys; i++) sum[r][i] = v_zero();
  for (size_t d = 0; d < depth; d += VEC_W) {
    const size_t n = depth - d < VEC_W ? depth - d : VEC_W;
    for (int i = 0; i < keys; i++)
      b[i] = n == VEC_W ? v_load(k + i * k_ld + d) : v_loadn(k + i * k_ld + d, n);
    for (int r = 0; r < rows; r++) {
      const vf a = n == VEC_W ? v_load(q + r * q_ld + d) : v_loadn(q + r * q_ld + d, n);
      for (int i = 0; i < keys; i++) sum[r][i] = v_fma(a, b[i], sum[r][i]);
    }
  }
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < keys; i++) score[r * score_ld + i] = v_hsum(sum[r][i]);
}

static inline __attribute__((always_inline)) void dot_rows(float *score, ptrdiff_t score_ld, const float *q,
                                                           ptrdiff_t q_ld, const float *k, ptrdiff_t k_ld,
                                                           size_t n, size_t depth, int rows) {
  size_t i = 0;
  for (; i + KEYS <= n; i += KEYS)
    dot_tile(score + i, score_ld, q, q_ld, k + (ptrdiff_t)i * k_ld, k_ld, depth, rows, KEYS);
  for (; i < n; i++) dot_tile(score + i, score_ld, q, q_ld, k + (ptrdiff_t)i * k_ld, k_ld, depth, rows, 1);
}

static void dots(float *score, ptrdiff_t score_ld, const float *q, ptrdiff_t q_ld, size_t rows,
                 const float *k, ptrdiff_t k_ld, size_t n, size_t depth) {
  for (; rows >= ROWS; rows -= ROWS, score += ROWS * score_ld, q += ROWS * q_ld)
    dot_rows(score, score_ld, q, q_ld, k, k_ld, n, depth, ROWS);
  for (; rows > 0; rows--, score += score_ld, q += q_ld)
    dot_rows(score, score_ld, q, q_ld, k, k_ld, n, depth, 1);
}

/* `columns` vectors of some rows of y, the last one with `tail` lanes. */
static inline __attribute__((always_inline)) void mix_tile(float *y, ptrdiff_t y_ld, const float *w,
                                                           ptrdiff_t w_ld, const float *v, ptrdiff_t v_ld,
                                                           size_t n, bool accumulate, int rows, int columns,
                                                           size_t tail) {
  vf sum[ROWS][COLUMNS], b[COLUMNS];
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      sum[r][c] = !accumulate ? v_zero() : v_loadn(y + r * y_ld + c * VEC_W, c + 1 < columns ? VEC_W : tail);
  for (size_t i = 0; i < n; i++, v += v_ld) {
    for (int c = 0; c < columns; c++)
      b[c] = tail == VEC_W || c + 1 < columns ? v_load(v + c * VEC_W) : v_loadn(v + c * VEC_W, tail);
    for (int r = 0; r < rows; r++) {
      const vf a = v_set1(w[r * w_ld + (ptrdiff_t)i]);
      for (int c = 0; c < columns; c++) sum[r][c] = v_fma(a, b[c], sum[r][c]);
    }
  }
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      v_storen(y + r * y_ld + c * VEC_W, sum[r][c], c + 1 < columns ? VEC_W : tail);
}

static inline __attribute__((always_inline)) void mix_rows(float *y, ptrdiff_t y_ld, const float *w,
                                                           ptrdiff_t w_ld, const float *v, ptrdiff_t v_ld,
                                                           size_t n, size_t depth, bool accumulate,
                                                           int rows) {
  size_t d = 0;
  for (; d + COLUMNS * VEC_W <= depth; d += COLUMNS * VEC_W)
    mix_tile(y + d, y_ld, w, w_ld, v + d, v_ld, n, accumulate, rows, COLUMNS, VEC_W);
  for (; d + 2 * VEC_W <= depth; d += 2 * VEC_W)
    mix_tile(y + d, y_ld, w, w_ld, v + d, v_ld, n, accumulate, rows, 2, VEC_W);
  for (; d < depth; d += VEC_W)
    mix_tile(y + d, y_ld, w, w_ld, v + d, v_ld, n, accumulate, rows, 1,
             depth - d < VEC_W ? depth - d : VEC_W);
}

static void mix(float *y, ptrdiff_t y_ld, const float *w, ptrdiff_t w_ld, size_t rows, const float *v,
                ptrdiff_t v_ld, size_t n, size_t depth, bool accumulate) {
  for (; rows >= ROWS; rows -= ROWS, y += ROWS * y_ld, w += ROWS * w_ld)
    mix_rows(y, y_ld, w, w_ld, v, v_ld, n, depth, accumulate, ROWS);
  for (; rows > 0; rows--, y += y_ld, w += w_ld) mix_rows(y, y_ld, w, w_ld, v, v_ld, n, depth, accumulate, 1);
}

#if VEC_W > 1
enum { CHAINS = 8 }; /* sums at once, as many as hide an addition's latency */

/* A key's scores, scaled and masked. */
static inline vf lane_scores(const hn_attention_head *h, vf sum, size_t key) {
  vf t = v_mul(sum, v_set1(h->scale));
  for (uint32_t i = 0; i < h->n_masks; i++) {
    const hn_mask_row *m = &h->mask[i];
    const ptrdiff_t at = (ptrdiff_t)key * m->step;
    if (h->in_lanes[i])
      t = v_fma(v_load((const float *)m->at + key * VEC_W), v_set1(m->value), t);
    else if (m->kind == HN_MASK_ADD)
      t = v_fma(v_set1(((const float *)m->at)[at]), v_set1(m->value), t);
    else if ((((const uint8_t *)m->at)[at] != 0) != (m->kind == HN_MASK_KEEP))
      t = v_set1(m->value);
  }
  return t;
}

/* Scores of n keys from `key` on, n constant where it is inlined; returns the maxima with `top`. */
static inline __attribute__((always_inline)) vf lane_keys(const hn_attention_head *h, size_t key, size_t n,
                                                          vf top) {
  const float *k = h->k + (ptrdiff_t)key * h->k_row;
  vf sum[CHAINS];
  for (size_t i = 0; i < n; i++) sum[i] = v_zero();
  for (size_t d = 0; d < h->depth; d++, k += h->k_col) {
    const vf q = v_load(h->q + d * VEC_W);
    for (size_t i = 0; i < n; i++) sum[i] = v_fma(q, v_set1(k[(ptrdiff_t)i * h->k_row]), sum[i]);
  }
  for (size_t i = 0; i < n; i++) {
    const vf t = lane_scores(h, sum[i], key + i);
    v_store(h->weights + (key + i) * VEC_W, t);
    top = v_max_number(top, t); /* a NaN that is lost here makes the sum NaN */
  }
  return top;
}

/* n columns of the result from d on. */
static inline __attribute__((always_inline)) void lane_columns(const hn_attention_head *h, size_t d, size_t n,
                                                               vf factor) {
  const float *v = h->v + d;
  vf sum[CHAINS];
  for (size_t i = 0; i < n; i++) sum[i] = v_zero();
  for (size_t key = 0; key < h->keys; key++, v += h->v_row) {
    const vf w = v_load(h->weights + key * VEC_W);
    for (size_t i = 0; i < n; i++) sum[i] = v_fma(w, v_set1(v[i]), sum[i]);
  }
  for (size_t i = 0; i < n; i++) v_store(h->y + (d + i) * VEC_W, v_mul(sum[i], factor));
}

static void head(const hn_attention_head *h) {
  const vf lowest = v_set1(-__builtin_inff());
  vf top = lowest, sum = v_zero(), more = v_zero();
  size_t i = 0;
  for (; i + CHAINS <= h->keys; i += CHAINS) top = lane_keys(h, i, CHAINS, top);
  for (; i < h->keys; i++) top = lane_keys(h, i, 1, top);
  /* No key is seen: no weight, and the result 0 / 0. */
  top = v_sel(v_eq(top, lowest), v_zero(), top);
  for (i = 0; i < h->keys; i++) {
    float *w = h->weights + i * VEC_W;
    const vf e = v_exp_weight(v_sub(v_load(w), top));
    v_store(w, e);
    const vf before = sum;
    sum = v_add(more, HN_FAULT("attention_lanes_sum") && i == 0 ? v_zero() : e);
    more = before;
  }
  sum = v_add(sum, more);
  vf factor = v_div(v_set1(1.0f), sum);
  if (h->nan_to_zero && !HN_FAULT("attention_lanes_nan_to_zero")) {
    const vf one = v_set1(1.0f), none = v_sel(v_lt(v_zero(), sum), v_zero(), one);
    const vm dead = v_eq(none, one); /* a sum of NaN is not above 0 */
    for (i = 0; i < h->keys && v_any(dead); i++) {
      float *w = h->weights + i * VEC_W;
      v_store(w, v_sel(dead, v_zero(), v_load(w)));
    }
    factor = v_sel(dead, one, factor);
  }
  for (i = 0; i + CHAINS <= h->depth_v; i += CHAINS) lane_columns(h, i, CHAINS, factor);
  for (; i + 2 <= h->depth_v; i += 2) lane_columns(h, i, 2, factor);
  if (i < h->depth_v) lane_columns(h, i, 1, factor);
}
#define HEAD .head = head, .lanes = VEC_W
#else
#define HEAD .head = NULL, .lanes = 1
#endif

static void turn(float *restrict y, const float *restrict x, const float *restrict c, const float *restrict s,
                 size_t half, bool neighbours) {
  for (size_t i = 0; i < half && neighbours; i++) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = c[i] * a - s[i] * b;
    y[2 * i + 1] = s[i] * a + c[i] * b;
  }
  for (size_t i = 0; i < half && !neighbours; i += VEC_W) {
    const size_t n = half - i < VEC_W ? half - i : VEC_W;
    const vf a = v_loadn(x + i, n), b = v_loadn(x + half + i, n), p = v_loadn(c + i, n),
             q = v_loadn(s + i, n);
    v_storen(y + i, v_fnma(q, b, v_mul(p, a)), n);
    v_storen(y + half + i, v_fma(q, a, v_mul(p, b)), n);
  }
}

static void rotate(float *restrict y, const float *restrict x, const float *restrict c,
                   const float *restrict s, size_t half, bool neighbours) {
  for (size_t i = 0; i < half && neighbours; i++) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = c[2 * i] * a - s[2 * i] * b;
    y[2 * i + 1] = c[2 * i + 1] * b + s[2 * i + 1] * a;
  }
  for (size_t i = 0; i < half && !neighbours; i += VEC_W) {
    const size_t n = half - i < VEC_W ? half - i : VEC_W, k = half + i;
    const vf a = v_loadn(x + i, n), b = v_loadn(x + k, n);
    v_storen(y + i, v_fnma(v_loadn(s + i, n), b, v_mul(v_loadn(c + i, n), a)), n);
    v_storen(y + k, v_fma(v_loadn(s + k, n), a, v_mul(v_loadn(c + k, n), b)), n);
  }
}

static const hn_attention_ops table = {SHORT,
                                       HEAD,
                                       .row = row,
                                       .most = most,
                                       .within = within,
                                       .scores = only_scores,
                                       .across = across,
                                       .scale = scale,
                                       .dots = dots,
                                       .mix = mix,
                                       .turn = turn,
                                       .rotate = rotate};
