/* The body of softmax_f32_<tier>.c. */
#include "backends/cpu/kernels/softmax/softmax.h"

#include <math.h>

#include "backends/cpu/kernels/vec/vec_math.h"
#include "backends/cpu/kernels/vec/vec_rows.h"
#include "base/fault.h"

/* One long row; `ahead` is the next one, which may not be there. A NaN may get lost on the way to the
 * maximum: it makes the sum NaN all the same. */
static void row(float *dst, const float *src, const float *ahead, size_t n, bool log) {
  const vf lowest = v_set1(-__builtin_inff());
  vf m0 = lowest, m1 = lowest;
  size_t i = 0;
  for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
    m0 = v_max_number(m0, v_load(src + i));
    m1 = v_max_number(m1, v_load(src + i + VEC_W));
  }
  for (; i < n; i += VEC_W) {
    const size_t k = n - i < VEC_W ? n - i : VEC_W;
    m0 = v_max_number(m0, v_sel(v_first(k), v_loadn(src + i, k), lowest));
  }
  const vf m = v_set1(v_hmax(v_max_number(m0, m1)));
  vf s0 = v_zero(), s1 = v_zero();
  i = 0;
  /* The logarithmic form reads x once more. */
  for (; i + 2 * VEC_W <= n; i += 2 * VEC_W) {
    __builtin_prefetch(ahead + i, 0, 2);
    __builtin_prefetch(ahead + i + VEC_W, 0, 2);
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

VEC_FOLD_ROWS(row_maxima, v_max_number)
VEC_FOLD_ROWS(row_sums, v_add)

/* Rows of up to so many elements are taken several at a time: a vector of rows, or as many as stay in L1
 * between the passes. What lies there is a copy in whole vectors: loads that meet a masked store wait until
 * it is done. */
#define SHORT_ROW 2048
#define KEPT 4096

/* Up to VEC_W rows. */
static void block_of_rows(float *dst, ptrdiff_t dst_pitch, const float *src, ptrdiff_t src_pitch, size_t rows,
                          size_t n, bool log) {
  const size_t whole = n / VEC_W * VEC_W, tail = n - whole;
  const vm present = v_first(tail);
  const vf lowest = v_set1(-__builtin_inff());
  const size_t pitch = whole + (tail ? VEC_W : 0);
  float top[VEC_W], factor[VEC_W], kept[KEPT];
  vf s[VEC_W];
  for (size_t k = 0; k < VEC_W; k++) s[k] = lowest;
  for (size_t k = 0; k < rows; k++) {
    const float *x = src + (ptrdiff_t)k * src_pitch;
    vf m = lowest, other = lowest;
    size_t i = 0;
    for (; i + 2 * VEC_W <= whole; i += 2 * VEC_W) {
      m = v_max_number(m, v_load(x + i));
      other = v_max_number(other, v_load(x + i + VEC_W));
    }
    if (i < whole) m = v_max_number(m, v_load(x + i));
    m = v_max_number(m, other);
    if (tail) m = v_max_number(m, v_sel(present, v_loadn(x + whole, tail), lowest));
    s[k] = m;
  }
  v_store(top, row_maxima(s));
  for (size_t k = 0; k < rows; k++) {
    const float *x = src + (ptrdiff_t)k * src_pitch;
    float *y = kept + k * pitch;
    const vf m = v_set1(top[k]);
    vf sum = v_zero();
    for (size_t i = 0; i < whole; i += VEC_W) {
      /* the next block's row, before its maximum is asked for */
      __builtin_prefetch(x + (ptrdiff_t)rows * src_pitch + (ptrdiff_t)i, 0, 2);
      const vf t = v_sub(v_load(x + i), m), e = v_exp_weight(t);
      v_store(y + i, log ? t : e);
      sum = v_add(sum, e);
    }
    if (tail) {
      const vf t = v_sub(v_loadn(x + whole, tail), m), e = v_exp_weight(t);
      v_store(y + whole, log ? t : e);
      if (!HN_FAULT("softmax_rows_tail")) sum = v_add(sum, v_sel(present, e, v_zero()));
    }
    s[k] = sum;
  }
  const vf sums = row_sums(s);
  v_store(factor, log ? v_log(sums) : v_div(v_set1(1.0f), sums));
  for (size_t k = 0; k < rows; k++) {
    const float *x = kept + k * pitch;
    float *y = dst + (ptrdiff_t)k * dst_pitch;
    const vf f = v_set1(factor[k]);
    for (size_t i = 0; i < whole; i += VEC_W)
      v_store(y + i, log ? v_sub(v_load(x + i), f) : v_mul(v_load(x + i), f));
    if (tail) v_storen(y + whole, log ? v_sub(v_load(x + whole), f) : v_mul(v_load(x + whole), f), tail);
  }
}

static void rows(float *dst, ptrdiff_t dst_pitch, const float *src, ptrdiff_t src_pitch, size_t rows,
                 size_t n, bool log) {
  const size_t fit = KEPT / (n + VEC_W), each = VEC_W == 1 || n > SHORT_ROW ? 1 : fit < VEC_W ? fit : VEC_W;
  for (size_t r = 0; r < rows; r += each) {
    float *y = dst + (ptrdiff_t)r * dst_pitch;
    const float *x = src + (ptrdiff_t)r * src_pitch;
    if (each == 1)
      row(y, x, x + src_pitch, n, log);
    else
      block_of_rows(y, dst_pitch, x, src_pitch, rows - r < each ? rows - r : each, n, log);
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

static const struct hn_softmax_ops table = {.rows = rows, .columns = columns};
