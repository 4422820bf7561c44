/* Matrix products of references: correct for every dtype, and fast enough to be the fallback. */
#ifndef HN_MODEL_OPS_MATRIX_H
#define HN_MODEL_OPS_MATRIX_H

#include "model/ops/common/convert.h"

/* A matrix as strides of its elements, so that transposition costs nothing to say. */
typedef struct hn_matrix {
  const void *data;
  int64_t row, col;
} hn_matrix;

/* c[m x n] (row-major, dense) = a[m x k] b[k x n], all of one dtype. Floats accumulate in f32 over at most
 * 256 products and in f64 beyond (f64 in f64); integers wrap. Refuses other dtypes. */
hone_status hn_matmul(hone_call *call, hone_dtype dtype, int64_t m, int64_t n, int64_t k, hn_matrix a,
                      hn_matrix b, void *c, hone_error *error);

#endif
