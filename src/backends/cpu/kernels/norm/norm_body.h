/* The body of norm_f32_<tier>.c. */
#include "backends/cpu/kernels/norm/norm.h"

#include <float.h>
#include <math.h>

#include "backends/cpu/kernels/vec/vec_math.h"
#include "backends/cpu/kernels/vec/vec_rows.h"
#include "base/fault.h"

/* Rows whose partial sums are added in f32 before they go into a double: keeps the error of long sums small.
 */
#define BLOCK 4096

/* Sum of f(x) in blocks; f sees the vector x and the constant m. */
#define BLOCK_SUM(nm, f)                                                                                     \
  static double nm(const float *p, size_t n, float mean) {                                                   \
    const vf m = v_set1(mean);                                                                               \
    double total = 0.0;                                                                                      \
    (void)m;                                                                                                 \
    while (n > 0) {                                                                                          \
      const size_t len = n < BLOCK ? n : BLOCK;                                                              \
      vf s0 = v_zero(), s1 = v_zero(), s2 = v_zero(), s3 = v_zero();                                         \
      size_t i = 0;                                                                                          \
      for (; i + 4 * VEC_W <= len; i += 4 * VEC_W) {                                                         \
        s0 = f(s0, v_load(p + i));                                                                           \
        s1 = f(s1, v_load(p + i + VEC_W));                                                                   \
        s2 = f(s2, v_load(p + i + 2 * VEC_W));                                                               \
        s3 = f(s3, v_load(p + i + 3 * VEC_W));                                                               \
      }                                                                                                      \
      for (; i + VEC_W <= len; i += VEC_W) s0 = f(s0, v_load(p + i));                                        \
      if (i < len) s1 = v_sel(v_first(len - i), f(s1, v_loadn(p + i, len - i)), s1);                         \
      total += (double)v_hsum(v_add(v_add(s0, s1), v_add(s2, s3)));                                          \
      p += len;                                                                                              \
      n -= len;                                                                                              \
    }                                                                                                        \
    return total;                                                                                            \
  }

#define PLAIN(s, v) v_add((s), (v))
static inline vf add_square(vf s, vf d) { return v_fma(d, d, s); }
#define SQUARE_DEVIATION(s, v) add_square((s), v_sub((v), m))
BLOCK_SUM(sum_of, PLAIN)
BLOCK_SUM(sum_of_squares, SQUARE_DEVIATION)

static void stats(const float *x, size_t n, float *mean, float *var) {
  *mean = (float)(sum_of(x, n, 0.0f) / (double)n);
  *var = (float)(sum_of_squares(x, n, *mean) / (double)n);
}

static void affine(float *y, const float *x, size_t n, float mean, float scale, float shift) {
  const vf m = v_set1(mean), a = v_set1(scale), b = v_set1(shift);
  size_t i = 0;
  for (; i + VEC_W <= n; i += VEC_W) v_store(y + i, v_fma(v_sub(v_load(x + i), m), a, b));
  if (i < n) v_storen(y + i, v_fma(v_sub(v_loadn(x + i, n - i), m), a, b), n - i);
}

/* h = x + residual + bias */
static void add_parts(float *h, const struct hn_norm_row *r) {
  size_t i = 0;
  for (; i + VEC_W <= r->n; i += VEC_W) {
    vf v = v_load(r->x + i);
    if (r->residual) v = v_add(v, v_load(r->residual + i));
    if (r->bias) v = v_add(v, v_load(r->bias + i));
    v_store(h + i, v);
  }
  if (i == r->n) return;
  const size_t k = r->n - i;
  vf v = v_loadn(r->x + i, k);
  if (r->residual) v = v_add(v, v_loadn(r->residual + i, k));
  if (r->bias) v = v_add(v, v_loadn(r->bias + i, k));
  v_storen(h + i, v, k);
}

static inline vf normalised(const struct hn_norm_row *r, vf v, size_t i, size_t k, vf m, vf s) {
  v = v_mul(v_sub(v, m), s);
  if (r->gamma && r->beta) return v_fma(v, v_loadn(r->gamma + i, k), v_loadn(r->beta + i, k));
  if (r->gamma) return v_mul(v, v_loadn(r->gamma + i, k));
  return r->beta ? v_add(v, v_loadn(r->beta + i, k)) : v;
}

static void row(struct hn_norm_row *r) {
  const float *h = r->x;
  if (r->n == 0) return;
  if (r->residual || r->bias || r->h) {
    float *sum = r->h ? r->h : r->y;
    add_parts(sum, r);
    h = sum;
  }
  const double n = (double)r->n;
  r->mean = r->rms ? 0.0f : (float)(sum_of(h, r->n, 0.0f) / n);
  const double var = sum_of_squares(h, r->n, r->mean) / (HN_FAULT("norm_biased_variance") ? n - 1.0 : n);
  r->inv_std = (float)(1.0 / sqrt(var + (double)r->eps));
  const vf m = v_set1(r->mean), s = v_set1(r->inv_std);
  size_t i = 0;
  if (r->gamma && r->beta)
    for (; i + VEC_W <= r->n; i += VEC_W)
      v_store(r->y + i, v_fma(v_mul(v_sub(v_load(h + i), m), s), v_load(r->gamma + i), v_load(r->beta + i)));
  else if (r->gamma)
    for (; i + VEC_W <= r->n; i += VEC_W)
      v_store(r->y + i, v_mul(v_mul(v_sub(v_load(h + i), m), s), v_load(r->gamma + i)));
  for (; i < r->n; i += VEC_W) {
    const size_t k = r->n - i < VEC_W ? r->n - i : VEC_W;
    v_storen(r->y + i, normalised(r, v_loadn(h + i, k), i, k, m, s), k);
  }
}

/* Rows of up to so many elements are taken several at a time: a vector of rows, or as many as stay in L1
 * between the passes. */
#define SHORT_ROW 2048
#define BLOCK_ELEMENTS 6144

VEC_FOLD_ROWS(row_sums, v_add)

/* The row that lies k rows behind r. */
static struct hn_norm_row row_behind(const struct hn_norm_row *r, size_t k) {
  struct hn_norm_row one = *r;
  one.x += k * r->n, one.y += k * r->n;
  if (r->residual) one.residual += k * r->n;
  if (r->h) one.h += k * r->n;
  return one;
}

/* Up to VEC_W short rows: sums of x, and of squares of x less its row's mean, a vector each. */
static void block_of_rows(const struct hn_norm_row *r, size_t rows, float *mean, float *inv_std) {
  const size_t n = r->n, whole = n / VEC_W * VEC_W, tail = n - whole;
  const vm present = v_first(tail);
  const vf count = v_set1((float)n);
  const float *h = r->x;
  vf s[VEC_W];
  if (r->residual || r->bias || r->h) {
    float *sum = r->h ? r->h : r->y;
    for (size_t k = 0; k < rows; k++) {
      const struct hn_norm_row one = row_behind(r, k);
      add_parts(sum + k * n, &one);
    }
    h = sum;
  }
  for (size_t k = 0; k < VEC_W; k++) s[k] = v_zero();
  for (size_t k = 0; k < rows && !r->rms; k++) {
    const float *x = h + k * n;
    vf sum = v_zero(), s1 = sum, s2 = sum, s3 = sum;
    size_t i = 0;
    for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) {
      sum = v_add(sum, v_load(x + i)), s1 = v_add(s1, v_load(x + i + VEC_W));
      s2 = v_add(s2, v_load(x + i + 2 * VEC_W)), s3 = v_add(s3, v_load(x + i + 3 * VEC_W));
    }
    for (; i < whole; i += VEC_W) sum = v_add(sum, v_load(x + i));
    if (tail) s1 = v_add(s1, v_loadn(x + whole, tail));
    s[k] = v_add(v_add(sum, s1), v_add(s2, s3));
  }
  v_store(mean, v_div(row_sums(s), count));
  for (size_t k = 0; k < rows; k++) {
    const float *x = h + k * n;
    const vf m = v_set1(mean[k]);
    vf sum = v_zero(), s1 = sum, s2 = sum, s3 = sum;
    size_t i = 0;
    for (; i + 4 * VEC_W <= n; i += 4 * VEC_W) {
      sum = add_square(sum, v_sub(v_load(x + i), m)), s1 = add_square(s1, v_sub(v_load(x + i + VEC_W), m));
      s2 = add_square(s2, v_sub(v_load(x + i + 2 * VEC_W), m));
      s3 = add_square(s3, v_sub(v_load(x + i + 3 * VEC_W), m));
    }
    for (; i < whole; i += VEC_W) sum = add_square(sum, v_sub(v_load(x + i), m));
    if (tail && !HN_FAULT("norm_rows_tail"))
      s1 = v_sel(present, add_square(s1, v_sub(v_loadn(x + whole, tail), m)), s1);
    s[k] = v_add(v_add(sum, s1), v_add(s2, s3));
  }
  const vf var = v_add(v_div(row_sums(s), count), v_set1(r->eps));
  v_store(inv_std, v_div(v_set1(1.0f), v_sqrt(var)));
  for (size_t k = 0; k < rows; k++) {
    const float *x = h + k * n;
    float *y = r->y + k * n;
    const vf m = v_set1(mean[k]), f = v_set1(inv_std[k]);
    if (r->gamma && r->beta)
      for (size_t i = 0; i < whole; i += VEC_W)
        v_store(y + i, v_fma(v_mul(v_sub(v_load(x + i), m), f), v_load(r->gamma + i), v_load(r->beta + i)));
    else
      for (size_t i = 0; i < whole; i += VEC_W) v_store(y + i, normalised(r, v_load(x + i), i, VEC_W, m, f));
    if (tail) v_storen(y + whole, normalised(r, v_loadn(x + whole, tail), whole, tail, m, f), tail);
  }
}

static void rows(const struct hn_norm_row *r, size_t rows, float *mean, float *inv_std) {
  const bool is_short = VEC_W > 1 && r->n <= SHORT_ROW;
  if (r->n == 0) return;
  const size_t fit = BLOCK_ELEMENTS / r->n, each = !is_short ? 1 : fit < VEC_W ? fit : VEC_W;
  for (size_t k = 0; k < rows; k += each) {
    struct hn_norm_row one = row_behind(r, k);
    if (!is_short) {
      row(&one);
      if (mean) mean[k] = one.mean;
      if (inv_std) inv_std[k] = one.inv_std;
      continue;
    }
    const size_t some = rows - k < each ? rows - k : each;
    float m[VEC_W], s[VEC_W];
    block_of_rows(&one, some, m, s);
    for (size_t i = 0; i < some && mean; i++) mean[k + i] = m[i];
    for (size_t i = 0; i < some && inv_std; i++) inv_std[k + i] = s[i];
  }
}

/* Per column: sums of at most this many rows before they are folded into the running total. */
#define ROW_BLOCK 256

static void column_stats(const float *x, size_t rows, size_t cols, ptrdiff_t ld, float *mean, float *var) {
  const vf inv = v_set1((float)(1.0 / (double)rows));
  for (size_t c = 0; c < cols; c += VEC_W) {
    const size_t k = cols - c < VEC_W ? cols - c : VEC_W;
    vf total = v_zero(), m, d;
    for (size_t r0 = 0; r0 < rows; r0 += ROW_BLOCK) {
      const size_t end = rows - r0 < ROW_BLOCK ? rows : r0 + ROW_BLOCK;
      vf s = v_zero();
      for (size_t r = r0; r < end; r++) s = v_add(s, v_loadn(x + (ptrdiff_t)r * ld + c, k));
      total = v_add(total, s);
    }
    m = v_mul(total, inv);
    v_storen(mean + c, m, k);
    total = v_zero();
    for (size_t r0 = 0; r0 < rows; r0 += ROW_BLOCK) {
      const size_t end = rows - r0 < ROW_BLOCK ? rows : r0 + ROW_BLOCK;
      vf s = v_zero();
      for (size_t r = r0; r < end; r++) {
        d = v_sub(v_loadn(x + (ptrdiff_t)r * ld + c, k), m);
        s = v_fma(d, d, s);
      }
      total = v_add(total, s);
    }
    v_storen(var + c, v_mul(total, inv), k);
  }
}

static void column_affine(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t rows, size_t cols,
                          const float *mean, const float *scale, const float *shift) {
  for (size_t r = 0; r < rows; r++) {
    const float *p = x + (ptrdiff_t)r * ldx;
    float *q = y + (ptrdiff_t)r * ldy;
    for (size_t c = 0; c < cols; c += VEC_W) {
      const size_t k = cols - c < VEC_W ? cols - c : VEC_W;
      vf v = v_loadn(p + c, k);
      if (mean) v = v_sub(v, v_loadn(mean + c, k));
      v_storen(q + c, v_fma(v, v_loadn(scale + c, k), v_loadn(shift + c, k)), k);
    }
  }
}

/* A vector of values some of whose neighbours have squares beyond f32: by squares of values times 2^-70, of
 * which the power knows in its exponent. bias is nothing beside these. */
static __attribute__((noinline)) vf far_neighbours(const struct hn_norm_neighbours *r, size_t i, size_t taps,
                                                   size_t k) {
  const float *p = r->from + i;
  vf sum = v_zero();
  for (size_t t = 0; t < taps; t++, p += r->step) {
    const vf v = v_mul(v_loadn(p, k), v_set1(0x1p-70f));
    sum = v_fma(v, v, sum);
  }
  const vf shift = v_set1((110 - 140 * r->beta) * 0x1.62e43p-1f), small = v_set1(0x1p-110f);
  const vf log = v_log(v_mul(v_set1(r->alpha), sum));
  return v_mul(v_mul(v_loadn(r->x + i, k), small), v_exp(v_fma(v_set1(-r->beta), log, shift)));
}

static void neighbours(const struct hn_norm_neighbours *r) {
  const vf alpha = v_set1(r->alpha), bias = v_set1(r->bias), power = v_set1(-r->beta);
  const size_t taps = r->taps - (HN_FAULT("norm_last_neighbour") && r->taps > 0);
  for (size_t i = 0; i < r->n; i += VEC_W) {
    const size_t k = r->n - i < VEC_W ? r->n - i : VEC_W;
    const float *p = r->from + i;
    vf sum = v_zero();
    for (size_t t = 0; t < taps; t++, p += r->step) {
      const vf v = v_loadn(p, k);
      sum = v_fma(v, v, sum);
    }
    const vf base = v_fma(alpha, sum, bias);
    vf y = v_mul(v_loadn(r->x + i, k), v_exp(v_mul(power, v_log(base))));
    const vm far = v_lt(v_set1(FLT_MAX), v_max_number(base, sum));
    if (v_any(far)) y = v_sel(far, far_neighbours(r, i, taps, k), y);
    v_storen(r->y + i, y, k);
  }
}

static const struct hn_norm_ops table = {.row = row,
                                         .rows = rows,
                                         .stats = stats,
                                         .affine = affine,
                                         .column_stats = column_stats,
                                         .column_affine = column_affine,
                                         .neighbours = neighbours};
