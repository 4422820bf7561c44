/* Matrix products of references. */
#include "model/ops/product/matrix.h"
#include "base/wide.h"
#include "model/ops/common/bulk.h"

enum { TILE = 32, ROWS = 4, CHUNK = 256 };

/* Adds a[rows x k] b[k x width] to sum; a is dense, b has `ldb` elements a row. Full tiles have constant trip
 * counts, so that the compiler vectorises them. */
static void tile_f32(const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int rows, int width,
                     double sum[ROWS][TILE]) {
  float acc[ROWS][TILE] = {{0}};
  if (rows == ROWS && width == TILE) {
    for (int64_t p = 0; p < k; p++) {
      const float *row = b + p * ldb;
      for (int r = 0; r < ROWS; r++) {
        const float v = a[r * lda + p];
        for (int j = 0; j < TILE; j++) acc[r][j] += v * row[j];
      }
    }
  } else {
    for (int64_t p = 0; p < k; p++)
      for (int r = 0; r < rows; r++)
        for (int j = 0; j < width; j++) acc[r][j] += a[r * lda + p] * b[p * ldb + j];
  }
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < width; j++) sum[r][j] += acc[r][j];
}

static hone_status dense_f32(hone_call *call, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                             float *c, hone_error *error) {
  for (int64_t i = 0; i < m; i += ROWS) {
    hone_status status = hn_call_check(call, error);
    if (status) return status;
    int rows = m - i < ROWS ? (int)(m - i) : ROWS;
    for (int64_t j = 0; j < n; j += TILE) {
      double sum[ROWS][TILE] = {{0}};
      int width = n - j < TILE ? (int)(n - j) : TILE;
      for (int64_t p = 0; p < k; p += CHUNK)
        tile_f32(a + i * k + p, k, b + p * n + j, n, k - p < CHUNK ? k - p : CHUNK, rows, width, sum);
      for (int r = 0; r < rows; r++)
        for (int x = 0; x < width; x++) c[(i + r) * n + j + x] = (float)sum[r][x];
    }
  }
  return HONE_OK;
}

/* Row by row, b read in order, four of its rows at once: each result adds the same products in the same order
 * as one after the other. U is the type to multiply in. */
#define DENSE(name, T, U)                                                                                    \
  HN_WIDE_BODY void row_##name##_body(int64_t n, int64_t k, const T *a, const T *b, T *restrict c) {         \
    int64_t p = 0;                                                                                           \
    for (; p + 4 <= k; p += 4) {                                                                             \
      const U v = (U)a[p], w = (U)a[p + 1], x = (U)a[p + 2], y = (U)a[p + 3];                                \
      const T *r = b + p * n, *s = r + n, *t = s + n, *u = t + n;                                            \
      for (int64_t j = 0; j < n; j++)                                                                        \
        c[j] = (T)((((U)c[j] + v * (U)r[j]) + w * (U)s[j]) + x * (U)t[j] + y * (U)u[j]);                     \
    }                                                                                                        \
    for (; p < k; p++) {                                                                                     \
      const U v = (U)a[p];                                                                                   \
      for (int64_t j = 0; j < n; j++) c[j] = (T)((U)c[j] + v * (U)b[p * n + j]);                             \
    }                                                                                                        \
  }                                                                                                          \
  HN_WIDE(void, row_##name, row_##name##_body,                                                               \
          (int64_t n, int64_t k, const T *a, const T *b, T *restrict c), (n, k, a, b, c))                    \
  static hone_status dense_##name(hone_call *call, int64_t m, int64_t n, int64_t k, const T *a, const T *b,  \
                                  T *c, hone_error *error) {                                                 \
    for (int64_t i = 0; i < m; i++) {                                                                        \
      hone_status status = hn_call_check(call, error);                                                       \
      if (status) return status;                                                                             \
      memset(c + i * n, 0, (size_t)n * sizeof(T));                                                           \
      row_##name(n, k, a + i * k, b, c + i * n);                                                             \
    }                                                                                                        \
    return HONE_OK;                                                                                          \
  }
DENSE(f64, double, double)
DENSE(w32, uint32_t, uint32_t)
DENSE(w64, uint64_t, uint64_t)

/* A dense copy of a matrix in the type to compute in (16-bit floats widen), or the matrix itself. */
static hone_status densify(hone_call *call, hone_dtype dtype, hn_matrix x, int64_t rows, int64_t cols,
                           const void **out, hone_error *error) {
  bool half = dtype == HONE_DTYPE_F16 || dtype == HONE_DTYPE_BF16;
  int64_t count;
  if (!half && (x.col == 1 || cols == 1) && (x.row == cols || rows == 1)) {
    *out = x.data;
    return HONE_OK;
  }
  size_t size = half ? 4 : hone_dtype_size(dtype);
  if (__builtin_mul_overflow(rows, cols, &count)) count = -1;
  void *copy = hn_scratch(call, count, size, error);
  if (!copy) return HONE_ERROR_MEMORY;
  *out = copy;
  const int64_t block = 16; /* squares, so that both sides stay in cache */
  for (int64_t i0 = 0; i0 < rows; i0 += block)
    for (int64_t j0 = 0; j0 < cols; j0 += block)
      for (int64_t i = i0; i < rows && i < i0 + block; i++)
        for (int64_t j = j0; j < cols && j < j0 + block; j++) {
          int64_t from = i * x.row + j * x.col, to = i * cols + j;
          if (half)
            hn_read_f32((float *)copy + to, x.data, dtype, from, 1);
          else if (size == 8)
            ((uint64_t *)copy)[to] = ((const uint64_t *)x.data)[from];
          else
            ((uint32_t *)copy)[to] = ((const uint32_t *)x.data)[from];
        }
  return HONE_OK;
}

hone_status hn_matmul(hone_call *call, hone_dtype dtype, int64_t m, int64_t n, int64_t k, hn_matrix a,
                      hn_matrix b, void *c, hone_error *error) {
  const void *da, *db;
  if (m == 0 || n == 0) return HONE_OK;
  if (k == 0) {
    memset(c, 0, (size_t)(m * n) * hone_dtype_size(dtype)); /* all zero bits are 0 in every dtype */
    return HONE_OK;
  }
  if (hone_dtype_size(dtype) < 4 && dtype != HONE_DTYPE_F16 && dtype != HONE_DTYPE_BF16)
    return hn_op_refuse(call->node, error, "dtype %s", hone_dtype_name(dtype));
  hone_status status = densify(call, dtype, a, m, k, &da, error);
  if (!status) status = densify(call, dtype, b, k, n, &db, error);
  if (status) return status;
  switch (dtype) {
  case HONE_DTYPE_F32: return dense_f32(call, m, n, k, da, db, c, error);
  case HONE_DTYPE_F64: return dense_f64(call, m, n, k, da, db, c, error);
  case HONE_DTYPE_I32:
  case HONE_DTYPE_U32: return dense_w32(call, m, n, k, da, db, c, error);
  case HONE_DTYPE_I64:
  case HONE_DTYPE_U64: return dense_w64(call, m, n, k, da, db, c, error);
  case HONE_DTYPE_F16:
  case HONE_DTYPE_BF16: {
    float *wide = hn_scratch(call, m * n, sizeof *wide, error);
    if (!wide) return HONE_ERROR_MEMORY;
    status = dense_f32(call, m, n, k, da, db, wide, error);
    if (!status) hn_write_f32(c, dtype, 0, wide, m * n);
    return status;
  }
  default: return hn_op_refuse(call->node, error, "dtype %s", hone_dtype_name(dtype));
  }
}
