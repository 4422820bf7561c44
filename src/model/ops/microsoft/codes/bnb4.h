/* Matrices of MatMulBnb4: rows x columns codes one after the other, the first of a byte in its high bits, by
 * a table of 16 numbers, times a scale for each block. */
#ifndef HN_MODEL_OPS_MICROSOFT_BNB4_H
#define HN_MODEL_OPS_MICROSOFT_BNB4_H

#include "model/ops/microsoft/common/inner.h"

typedef struct hn_bnb4 {
  int64_t rows, columns, block;
  bool turned;        /* A meets columns, and the result has the rows */
  const float *value; /* [16] */
} hn_bnb4;

/* Read from the node's attributes. */
hone_status hn_bnb4_of(const hone_node *node, hn_bnb4 *out, hone_error *error);
/* Row `row` as floats, out[columns]. */
void hn_bnb4_row(const hn_bnb4 *w, const hone_tensor *codes, const hone_tensor *scales, int64_t row,
                 float *out);

#endif
