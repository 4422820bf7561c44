/* Checked indices of the gathering and scattering operators. */
#ifndef HN_MODEL_OPS_INDEX_H
#define HN_MODEL_OPS_INDEX_H

#include "model/ops/common/op.h"

/* Input i must be i32 or i64. */
static inline hone_status hn_infer_indices(const hone_infer *io, uint32_t i, hone_error *error) {
  hone_dtype t = io->input[i]->dtype;
  if (t == HONE_DTYPE_NONE || t == HONE_DTYPE_I32 || t == HONE_DTYPE_I64) return HONE_OK;
  return hn_op_bad(io->node, error, "indices are %s, not i32 or i64", hone_dtype_name(t));
}

/* A place in [0, dim); negative indices count from the end. */
static inline hone_status hn_index(const hone_node *node, int64_t index, int64_t dim, int64_t *out,
                                   hone_error *error) {
  *out = index < 0 ? index + dim : index;
  if (*out >= 0 && *out < dim) return HONE_OK;
  return hn_op_bad(node, error, "index %lld is outside [-%lld, %lld)", (long long)index, (long long)dim,
                   (long long)dim);
}

#endif
