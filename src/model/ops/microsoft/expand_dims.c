/* ExpandDims: a dimension of 1 before the given axis. */
#include "model/ops/microsoft/common/inner.h"

enum { X, AXIS };

static hone_status shaped(const hone_node *node, const hone_tensor_desc *x, int64_t axis, hone_tensor_desc *y,
                          hone_error *error) {
  const int32_t rank = x->rank + 1;
  if (rank > HONE_MAX_RANK || axis < -rank || axis >= rank)
    return hn_op_bad(node, error, "axis is %lld, for an input of rank %d", (long long)axis, (int)x->rank);
  const int32_t at = (int32_t)(axis < 0 ? axis + rank : axis);
  int64_t dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) dim[i] = i == at ? 1 : x->dim[i < at ? i : i - 1];
  *y = hone_desc(x->dtype, rank, dim);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X];
  int64_t axis;
  hone_tensor_desc y = {.dtype = x->dtype, .rank = -1};
  hone_status s = hn_infer_dtype_in(io, AXIS, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s && io->input[AXIS]->rank >= 0 && hone_desc_known(io->input[AXIS]) &&
      hone_desc_count(io->input[AXIS]) != 1)
    s = hn_op_bad(io->node, error, "the axis is not one number");
  if (!s && x->rank >= 0 && hn_infer_ints(io, AXIS, &axis, 1) == 1)
    s = shaped(io->node, x, axis, &y, error);
  else if (!s && x->rank >= 0) {
    const int64_t open[HONE_MAX_RANK] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN,
                                         HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN,
                                         HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
    if (x->rank == HONE_MAX_RANK) return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
    y = hone_desc(x->dtype, x->rank + 1, open);
  }
  if (!s) hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  hone_tensor_desc y;
  hone_status s = shaped(call->node, &x->desc, hn_get_i64(call->input[AXIS], 0), &y, error);
  if (!s && !call->output[0]->data) s = call->alloc_output(call, 0, &y, error);
  if (!s) hn_copy_elements(call->output[0]->data, x->data, hn_count(x), x->desc.dtype);
  return s;
}

HN_OP(expand_dims) = {HONE_DESC_HEAD(hone_op_desc),
                      .domain = "com.microsoft",
                      .op_type = "ExpandDims",
                      .since = 1,
                      .flags = HONE_OP_VIEW,
                      HN_INPUTS(2, 2),
                      HN_OUTPUTS(1, 1),
                      .types = HN_TYPES_ALL,
                      .infer = infer,
                      .reference = reference,
                      .host_inputs = 1u << AXIS};
