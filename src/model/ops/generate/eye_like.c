/* EyeLike: ones on diagonal k of a matrix of the input's shape, zeros elsewhere. */
#include "model/ops/common/op.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t dtype = hone_node_int(io->node, "dtype", x->dtype), dim[2] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
  if (x->rank >= 0 && x->rank != 2)
    return hn_op_bad(io->node, error, "the input has rank %d, not 2", x->rank);
  if (dtype < 0 || dtype > 31 || !((HN_TYPES_NUMBER | HN_TYPES_BOOL) & HONE_TYPES(dtype)))
    return hn_op_refuse(io->node, error, "dtype number %lld", (long long)dtype);
  hn_infer_set(io, 0, (hone_dtype)dtype, 2, x->rank == 2 ? x->dim : dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  hone_tensor *y = call->output[0];
  int64_t rows = y->desc.dim[0], cols = y->desc.dim[1], k = hone_node_int(call->node, "k", 0);
  memset(y->data, 0, (size_t)hn_count(y) * hone_dtype_size(y->desc.dtype));
  if (k >= cols || k <= -rows) return HONE_OK;
  for (int64_t r = k < 0 ? -k : 0; r < rows && r + k < cols; r++) hn_set_i64(y, r * cols + r + k, 1);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "dtype", .type = HONE_ATTR_INT}, {.name = "k", .type = HONE_ATTR_INT}, {0}};

HN_OP(eye_like) = {HN_OP_HEAD,      .op_type = "EyeLike", .since = 9,
                   HN_INPUTS(1, 1), HN_OUTPUTS(1, 1),     .types = HN_TYPES_NUMBER | HN_TYPES_BOOL,
                   .attrs = attrs,  .infer = infer,       .reference = reference};
