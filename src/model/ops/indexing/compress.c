/* Compress: the slices along an axis (or the elements of the flattened input) whose condition is true. */
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *c = io->input[1];
  hone_tensor_desc y = *io->input[0];
  if (c->dtype && c->dtype != HONE_DTYPE_BOOL)
    return hn_op_bad(io->node, error, "condition is %s", hone_dtype_name(c->dtype));
  if (c->rank >= 0 && c->rank != 1)
    return hn_op_bad(io->node, error, "condition has rank %d, not 1", c->rank);
  if (!hone_node_has(io->node, "axis")) {
    y.rank = 1;
    y.dim[0] = HONE_DIM_UNKNOWN;
  } else if (y.rank >= 0) {
    int32_t axis;
    hone_status status = hn_axis(hone_node_int(io->node, "axis", 0), y.rank, &axis, error);
    if (status) return status;
    y.dim[axis] = HONE_DIM_UNKNOWN;
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

/* At most every condition is true. */
static hone_status most(const hone_infer *io, hone_error *error) {
  hone_tensor_desc *y = io->output[0];
  hone_status status = infer(io, error);
  if (status || !y) return status;
  const bool by_axis = hone_node_has(io->node, "axis");
  int32_t axis = 0;
  if (by_axis) status = hn_axis(hone_node_int(io->node, "axis", 0), y->rank, &axis, error);
  if (status) return status;
  const int64_t length = by_axis ? io->input[0]->dim[axis] : hone_desc_count(io->input[0]);
  const int64_t given = hone_desc_count(io->input[1]);
  y->dim[axis] = given < length ? given : length;
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const uint8_t *keep = call->input[1]->data;
  hone_tensor_desc y = hone_desc(x->desc.dtype, x->desc.rank, x->desc.dim);
  int64_t n = hn_count(call->input[1]), outer = 1, length = hn_count(x), inner = 1, kept = 0;
  int32_t axis = 0;
  if (hone_node_has(call->node, "axis")) {
    hone_status status = hn_axis(hone_node_int(call->node, "axis", 0), y.rank, &axis, error);
    if (status) return status;
    outer = hn_product(y.dim, 0, axis), length = y.dim[axis], inner = hn_product(y.dim, axis + 1, y.rank);
  } else
    y.rank = 1;
  for (int64_t i = 0; i < n; i++) {
    if (keep[i] && i >= length)
      return hn_op_bad(call->node, error, "condition %lld is true, the axis has %lld elements", (long long)i,
                       (long long)length);
    kept += keep[i] != 0;
  }
  y.dim[axis] = kept;
  hone_status status = call->alloc_output(call, 0, &y, error);
  if (status) return status;
  size_t block = (size_t)inner * hone_dtype_size(y.dtype);
  char *to = call->output[0]->data;
  for (int64_t o = 0; o < outer; o++) {
    status = hn_call_check(call, error);
    if (status) return status;
    for (int64_t i = 0; i < n && i < length && block; i++) {
      if (!keep[i]) continue;
      memcpy(to, (const char *)x->data + (size_t)(o * length + i) * block, block);
      to += block;
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_OP(compress) = {HN_OP_HEAD,
                   .op_type = "Compress",
                   .since = 9,
                   .flags = HONE_OP_MOVE | HONE_OP_DATA_DEPENDENT,
                   HN_INPUTS(2, 2),
                   HN_OUTPUTS(1, 1),
                   .types = HN_TYPES_ALL,
                   .attrs = attrs,
                   .infer = infer,
                   .most = most,
                   .reference = reference};
