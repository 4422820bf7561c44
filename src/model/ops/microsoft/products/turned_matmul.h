/* Products of operands with dimensions in another order: alpha MatMul(A', B').
 *
 * transBatch makes the first dimension that of the rows: [d0, d1, ..., dk, n] is read as [d1, ..., dk, d0,
 * n]. trans then exchanges the last two. */
#ifndef HN_MODEL_OPS_MICROSOFT_TURNED_MATMUL_H
#define HN_MODEL_OPS_MICROSOFT_TURNED_MATMUL_H

#include "model/ops/microsoft/activations/fused_activation.h"

/* The order of the dimensions of operand 0 (A) or 1 (B) of that rank; false: as they are. */
bool hn_turned_perm(const hone_node *node, int operand, int32_t rank, int64_t *perm);
hone_status hn_turned_infer(const hone_infer *io, hone_error *error);
void hn_turned_cost(const hone_infer *io, hone_cost *cost);
hone_status hn_turned_run(hone_call *call, hone_error *error);

#define HN_TURNED_ATTRS                                                                                      \
  {.name = "alpha", .type = HONE_ATTR_FLOAT}, {.name = "transA", .type = HONE_ATTR_INT},                     \
      {.name = "transB", .type = HONE_ATTR_INT}, {.name = "transBatchA", .type = HONE_ATTR_INT}, {           \
    .name = "transBatchB", .type = HONE_ATTR_INT                                                             \
  }

#endif
