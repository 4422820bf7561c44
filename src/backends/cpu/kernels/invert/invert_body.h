/* The body of invert_f64_<tier>.c: Gauss and Jordan in place. A step's column holds afterwards what the step
 * did to every row, so that a block of steps is done to the other columns at once, as a product of rank
 * HN_INVERT_BLOCK. */
#include "backends/cpu/kernels/invert/invert.h"

#include <math.h>
#include <stdbool.h>

#include "base/fault.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum { W = HN_INVERT_BLOCK };
typedef double vd __attribute__((vector_size(W * sizeof(double)), may_alias));

typedef int64_t vl __attribute__((vector_size(W * sizeof(int64_t)), may_alias));

typedef int64_t vl_any __attribute__((vector_size(W * sizeof(int64_t)), may_alias, aligned(8)));
/* From W - 1 - j on: a mask of all lanes but j. A lane is replaced by it and not by a number that is stored
 * into the row, as a vector that is read right behind a shorter store waits for it. */
static const int64_t all_but_one[2 * W - 1] = {-1, -1, -1, -1, -1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1};

static inline vd *row_at(double *a, size_t pitch, size_t r) { return (vd *)(void *)(a + r * pitch); }

static void swap_rows(double *a, size_t pitch, size_t r, size_t s) {
  vd *x = row_at(a, pitch, r), *y = row_at(a, pitch, s);
  for (size_t k = 0; k < pitch / W; k++) {
    const vd t = x[k];
    x[k] = y[k];
    y[k] = t;
  }
}

/* Steps c to c + steps on the columns of vector c / W alone; rows are exchanged as a whole. */
static void eliminate(double *a, size_t n, size_t pitch, size_t c, size_t steps, int32_t *order) {
  const size_t v = c / W;
  for (size_t j = 0; j < steps; j++) {
    const size_t at = c + j;
    size_t pivot = at;
    double most = fabs(a[at * pitch + at]);
    for (size_t r = at + 1; r < n; r++) {
      const double x = fabs(a[r * pitch + at]);
      const bool more = x > most; /* chosen without a jump: nobody can foretell it */
      most = more ? x : most;
      pivot = more ? r : pivot;
    }
    order[at] = (int32_t)pivot;
    swap_rows(a, pitch, pivot, at);
    const double by = 1 / a[at * pitch + at];
    const vl keep = *(const vl_any *)(const void *)(all_but_one + W - 1 - j);
    const vd all_by = (vd){0} + by, scaled = row_at(a, pitch, at)[v] * by;
    const vd mine = (vd)((keep & (vl)scaled) | (~keep & (vl)all_by));
    for (size_t r = 0; r < n; r++) {
      vd *x = &row_at(a, pitch, r)[v];
      *x = (vd)(keep & (vl)*x) - a[r * pitch + at] * mine;
    }
    row_at(a, pitch, at)[v] = mine;
  }
}

#if defined(__AVX512F__)
enum { TOGETHER = 2 }; /* rows that share what they read, as many as there are registers for */
static inline vd multiplied_and_added(vd a, vd b, vd c) {
  return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
typedef vd factor;
#define MULTIPLY_ADD(a, b, c) multiplied_and_added(a, b, c)
#else
enum { TOGETHER = 1 };
typedef double factor;
#define MULTIPLY_ADD(a, b, c) ((c) + (a) * (b))
#endif

/* Vectors first to end of R rows from r on: what the steps' columns say, times the steps' rows. */
#define ROWS(R, first, end)                                                                                  \
  for (size_t k = (first); k < (end); k++) {                                                                 \
    vd sum[R];                                                                                               \
    for (size_t i = 0; i < (R); i++) sum[i] = row_at(a, pitch, r + i)[k];                                    \
    for (size_t j = 0; j < W; j++) {                                                                         \
      const vd s = old[j * (pitch / W) + k];                                                                 \
      for (size_t i = 0; i < (R); i++) sum[i] = MULTIPLY_ADD(f[i][j], s, sum[i]);                            \
    }                                                                                                        \
    for (size_t i = 0; i < (R); i++) row_at(a, pitch, r + i)[k] = sum[i];                                    \
  }
#define ROWS_OF(R)                                                                                           \
  do {                                                                                                       \
    factor f[R][W];                                                                                          \
    for (size_t i = 0; i < (R); i++)                                                                         \
      for (size_t j = 0; j < W; j++) f[i][j] = (factor){0} + a[(r + i) * pitch + c + j];                     \
    ROWS(R, 0, v)                                                                                            \
    ROWS(R, v + 1, pitch / W)                                                                                \
  } while (0)

/* The same steps on all other columns. spare: their rows before. */
static void spread(double *a, size_t n, size_t pitch, size_t c, size_t steps, double *spare) {
  const size_t v = c / W;
  vd *old = row_at(spare, pitch, 0);
  for (size_t j = 0; j < steps; j++) {
    vd *mine = row_at(a, pitch, c + j);
    for (size_t k = 0; k < pitch / W; k++) {
      old[j * (pitch / W) + k] = mine[k];
      if (k != v) mine[k] -= mine[k]; /* 0; NaN stays */
    }
  }
  for (size_t i = steps * (pitch / W); i < W * (pitch / W); i++) old[i] = (vd){0};
  size_t r = 0;
  for (; r + TOGETHER <= n; r += TOGETHER) ROWS_OF(TOGETHER);
  for (; r < n; r++) ROWS_OF(1);
}

static void matrix(float *y, const float *x, size_t n, size_t pitch, double *a, int32_t *order) {
  for (size_t r = 0; r < n; r++) {
    for (size_t k = 0; k < n; k++) a[r * pitch + k] = (double)x[r * n + k];
    for (size_t k = n; k < pitch; k++) a[r * pitch + k] = 0;
  }
  for (size_t c = 0; c < n; c += W) {
    const size_t steps = n - c < W ? n - c : W;
    eliminate(a, n, pitch, c, steps, order);
    if (pitch > W) spread(a, n, pitch, c, steps, a + n * pitch);
  }
  /* Rows that were exchanged are columns of the inverse: which column stands where now. */
  int32_t *at = (int32_t *)(void *)(a + n * pitch);
  for (size_t c = 0; c < n; c++) at[c] = (int32_t)c;
  for (size_t c = HN_FAULT("invert_exchanges") ? 0 : n; c-- > 0;) {
    const int32_t other = order[c], t = at[c];
    at[c] = at[other];
    at[other] = t;
  }
  for (size_t r = 0; r < n; r++)
    for (size_t c = 0; c < n; c++) y[r * n + c] = (float)a[r * pitch + (size_t)at[c]];
}

static const struct hn_invert_ops table = {.matrix = matrix};
