/* Products of stacks of matrices, as numpy.matmul defines them: shared by MatMul and its integer forms. */
#ifndef HN_MODEL_OPS_BATCH_H
#define HN_MODEL_OPS_BATCH_H

#include "model/ops/common/op.h"

/* Sizes of one product; the stack dimensions broadcast. Vectors have become matrices of one row or column. */
typedef struct hn_batch {
  int64_t m, n, k, count;                                         /* count: products in the stack */
  int32_t rank;                                                   /* of the stack */
  int64_t dim[HONE_MAX_RANK], a[HONE_MAX_RANK], b[HONE_MAX_RANK]; /* steps in elements; 0 where broadcast */
} hn_batch;

/* Output dimensions of a x b into dims (unknown ones flow through; *rank -1 when a rank is unknown). */
hone_status hn_batch_infer(const hone_node *node, const hone_tensor_desc *a, const hone_tensor_desc *b,
                           int32_t *rank, int64_t *dims, hone_error *error);
/* Of known descriptors that hn_batch_infer accepts. */
void hn_batch_make(hn_batch *batch, const hone_tensor_desc *a, const hone_tensor_desc *b);
/* Element offsets of the i-th product's operands. */
void hn_batch_at(const hn_batch *batch, int64_t i, int64_t *a, int64_t *b);
/* 2 m n k a product; 0 when dimensions are unknown. */
void hn_batch_cost(const hone_infer *io, uint32_t a, uint32_t b, hone_cost *cost);

#endif
