/* The body of reduce_f32_<tier>.c. Long sums are cut into blocks whose results are added in double (rows) or
 * in a second accumulator (columns), so the error grows with the block, not with the length. */
#include "backends/cpu/kernels/reduce/reduce.h"

#include <math.h>

#include "backends/cpu/kernels/vec/vec_rows.h"
#include "base/fault.h"

#define ROW_BLOCK 4096
#define COLUMN_BLOCK 256
#define SHORT_ROW (8 * VEC_W) /* up to which rows are folded together */

static inline vf step_sum(vf s, vf x) { return v_add(s, x); }
static inline vf step_abs(vf s, vf x) { return v_add(s, v_abs(x)); }
static inline vf step_square(vf s, vf x) { return v_fma(x, x, s); }
static inline vf step_prod(vf s, vf x) { return v_mul(s, x); }
static inline vf step_max(vf s, vf x) { return v_max(s, x); }
static inline vf step_min(vf s, vf x) { return v_min(s, x); }

static inline double fold_add(double a, double b) { return a + b; }
static inline double fold_mul(double a, double b) { return a * b; }
static inline double fold_max(double a, double b) { return a != a || a > b ? a : b; }
static inline double fold_min(double a, double b) { return a != a || a < b ? a : b; }

/* nm: suffix; init: neutral element; join: combines two partial results; fold: the same for two doubles;
 * lanes: for the lanes of one vector. */
#define REDUCTION(nm, init, join, fold, lanes)                                                               \
  static float row_##nm(const float *x, size_t n) {                                                          \
    double total = (double)(init);                                                                           \
    while (n > 0) {                                                                                          \
      const size_t len = n < ROW_BLOCK ? n : ROW_BLOCK;                                                      \
      vf s0 = v_set1(init), s1 = s0, s2 = s0, s3 = s0;                                                       \
      size_t i = 0;                                                                                          \
      for (; i + 4 * VEC_W <= len; i += 4 * VEC_W) {                                                         \
        s0 = step_##nm(s0, v_load(x + i));                                                                   \
        s1 = step_##nm(s1, v_load(x + i + VEC_W));                                                           \
        s2 = step_##nm(s2, v_load(x + i + 2 * VEC_W));                                                       \
        s3 = step_##nm(s3, v_load(x + i + 3 * VEC_W));                                                       \
      }                                                                                                      \
      for (; i + VEC_W <= len; i += VEC_W) s0 = step_##nm(s0, v_load(x + i));                                \
      if (i < len) {                                                                                         \
        const vf t = step_##nm(s1, v_loadn(x + i, len - i));                                                 \
        if (!HN_FAULT("reduce_row_tail")) s1 = v_sel(v_first(len - i), t, s1);                               \
      }                                                                                                      \
      total = fold(total, (double)lanes(join(join(s0, s1), join(s2, s3))));                                  \
      x += len;                                                                                              \
      n -= len;                                                                                              \
    }                                                                                                        \
    return (float)total;                                                                                     \
  }                                                                                                          \
  VEC_FOLD_ROWS(lanes_##nm, join)                                                                            \
  static void rows_##nm(float *dst, const float *src, size_t rows, size_t n, ptrdiff_t ld) {                 \
    if (VEC_W == 1 || n > SHORT_ROW) {                                                                       \
      for (size_t r = 0; r < rows; r++) dst[r] = row_##nm(src + (ptrdiff_t)r * ld, n);                       \
      return;                                                                                                \
    }                                                                                                        \
    const size_t whole = n / VEC_W * VEC_W, tail = n - whole;                                                \
    vf s[VEC_W];                                                                                             \
    for (size_t k = 0; k < VEC_W; k++) s[k] = v_set1(init);                                                  \
    for (size_t r = 0; r < rows; r += VEC_W) {                                                               \
      const size_t some = rows - r < VEC_W ? rows - r : VEC_W;                                               \
      for (size_t k = 0; k < some; k++) {                                                                    \
        const float *x = src + (ptrdiff_t)(r + k) * ld;                                                      \
        vf t = v_set1(init);                                                                                 \
        for (size_t i = 0; i < whole; i += VEC_W) t = step_##nm(t, v_load(x + i));                           \
        if (tail && !HN_FAULT("reduce_rows_tail"))                                                           \
          t = v_sel(v_first(tail), step_##nm(t, v_loadn(x + whole, tail)), t);                               \
        s[k] = t;                                                                                            \
      }                                                                                                      \
      v_storen(dst + r, lanes_##nm(s), some);                                                                \
    }                                                                                                        \
  }                                                                                                          \
  static void columns_##nm(float *dst, const float *src, size_t rows, size_t cols, ptrdiff_t ld) {           \
    size_t c = 0;                                                                                            \
    for (; c + 4 * VEC_W <= cols; c += 4 * VEC_W) {                                                          \
      vf t0 = v_set1(init), t1 = t0, t2 = t0, t3 = t0;                                                       \
      for (size_t r0 = 0; r0 < rows; r0 += COLUMN_BLOCK) {                                                   \
        const size_t end = rows - r0 < COLUMN_BLOCK ? rows : r0 + COLUMN_BLOCK;                              \
        vf s0 = v_set1(init), s1 = s0, s2 = s0, s3 = s0;                                                     \
        for (size_t r = r0; r < end; r++) {                                                                  \
          const float *p = src + (ptrdiff_t)r * ld + c;                                                      \
          s0 = step_##nm(s0, v_load(p));                                                                     \
          s1 = step_##nm(s1, v_load(p + VEC_W));                                                             \
          s2 = step_##nm(s2, v_load(p + 2 * VEC_W));                                                         \
          s3 = step_##nm(s3, v_load(p + 3 * VEC_W));                                                         \
        }                                                                                                    \
        t0 = join(t0, s0), t1 = join(t1, s1), t2 = join(t2, s2), t3 = join(t3, s3);                          \
      }                                                                                                      \
      v_store(dst + c, t0);                                                                                  \
      v_store(dst + c + VEC_W, t1);                                                                          \
      v_store(dst + c + 2 * VEC_W, t2);                                                                      \
      v_store(dst + c + 3 * VEC_W, t3);                                                                      \
    }                                                                                                        \
    for (; c < cols; c += VEC_W) {                                                                           \
      const size_t k = cols - c < VEC_W ? cols - c : VEC_W;                                                  \
      vf t = v_set1(init);                                                                                   \
      for (size_t r0 = 0; r0 < rows; r0 += COLUMN_BLOCK) {                                                   \
        const size_t end = rows - r0 < COLUMN_BLOCK ? rows : r0 + COLUMN_BLOCK;                              \
        vf s = v_set1(init);                                                                                 \
        for (size_t r = r0; r < end; r++) s = step_##nm(s, v_loadn(src + (ptrdiff_t)r * ld + c, k));         \
        t = join(t, s);                                                                                      \
      }                                                                                                      \
      v_storen(dst + c, t, k);                                                                               \
    }                                                                                                        \
  }

REDUCTION(sum, 0.0f, v_add, fold_add, v_hsum)
REDUCTION(abs, 0.0f, v_add, fold_add, v_hsum)
REDUCTION(square, 0.0f, v_add, fold_add, v_hsum)
REDUCTION(prod, 1.0f, v_mul, fold_mul, v_hprod)
REDUCTION(max, -__builtin_inff(), v_max, fold_max, v_hmax)
REDUCTION(min, __builtin_inff(), v_min, fold_min, v_hmin)

static const struct hn_reduce_ops table = {
    .row = {[HN_REDUCE_SUM] = row_sum,
            [HN_REDUCE_ABS] = row_abs,
            [HN_REDUCE_SQUARE] = row_square,
            [HN_REDUCE_PROD] = row_prod,
            [HN_REDUCE_MAX] = row_max,
            [HN_REDUCE_MIN] = row_min},
    .rows = {[HN_REDUCE_SUM] = rows_sum,
             [HN_REDUCE_ABS] = rows_abs,
             [HN_REDUCE_SQUARE] = rows_square,
             [HN_REDUCE_PROD] = rows_prod,
             [HN_REDUCE_MAX] = rows_max,
             [HN_REDUCE_MIN] = rows_min},
    .columns = {[HN_REDUCE_SUM] = columns_sum,
                [HN_REDUCE_ABS] = columns_abs,
                [HN_REDUCE_SQUARE] = columns_square,
                [HN_REDUCE_PROD] = columns_prod,
                [HN_REDUCE_MAX] = columns_max,
                [HN_REDUCE_MIN] = columns_min},
};
