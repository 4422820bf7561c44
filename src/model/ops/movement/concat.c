/* Concat: inputs joined along one axis; all other dimensions are equal. */
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

static int64_t axis_of(const hone_node *node) {
  return hone_node_int(node, "axis", 1); /* the default of opset 1 */
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = {.rank = -1};
  int32_t axis = 0;
  bool sized = true;
  int64_t total = 0;
  for (uint32_t i = 0; i < io->n_inputs; i++) {
    const hone_tensor_desc *x = io->input[i];
    if (!x) return hn_op_bad(io->node, error, "input %u is missing", i);
    if (y.dtype && x->dtype && y.dtype != x->dtype)
      return hn_op_bad(io->node, error, "input %u is %s, others are %s", i, hone_dtype_name(x->dtype),
                       hone_dtype_name(y.dtype));
    if (x->dtype) y.dtype = x->dtype;
    if (x->rank < 0) {
      sized = false;
      continue;
    }
    if (y.rank < 0) {
      hone_status status = hn_axis(axis_of(io->node), x->rank, &axis, error);
      if (status) return status;
      y.rank = x->rank;
      memcpy(y.dim, x->dim, sizeof y.dim);
    }
    if (x->rank != y.rank)
      return hn_op_bad(io->node, error, "input %u has rank %d, others %d", i, x->rank, y.rank);
    for (int32_t d = 0; d < y.rank; d++) {
      if (d == axis) {
        if (x->dim[d] < 0)
          sized = false;
        else if (__builtin_add_overflow(total, x->dim[d], &total))
          return hn_op_bad(io->node, error, "the result is too large");
      } else if (y.dim[d] < 0)
        y.dim[d] = x->dim[d] < 0 ? y.dim[d] : x->dim[d];
      else if (x->dim[d] >= 0 && x->dim[d] != y.dim[d])
        return hn_op_bad(io->node, error, "input %u has size %lld in dimension %d, others %lld", i,
                         (long long)x->dim[d], d, (long long)y.dim[d]);
    }
  }
  if (y.rank >= 0)
    y.dim[axis] = sized ? total : io->n_inputs == 1 ? io->input[0]->dim[axis] : HONE_DIM_UNKNOWN;
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  int32_t axis;
  hone_status status = hn_axis(axis_of(call->node), y->desc.rank, &axis, error);
  if (status) return status;
  if (hn_count(y) == 0) return HONE_OK;
  int64_t outer = hn_product(y->desc.dim, 0, axis), inner = hn_product(y->desc.dim, axis + 1, y->desc.rank),
          at = 0;
  size_t size = hone_dtype_size(y->desc.dtype), row = (size_t)(y->desc.dim[axis] * inner) * size;
  for (uint32_t i = 0; i < call->n_inputs; i++) {
    const hone_tensor *x = call->input[i];
    size_t part = (size_t)(x->desc.dim[axis] * inner) * size;
    char *to = (char *)y->data + (size_t)at * size;
    status = hn_call_check(call, error);
    if (status) return status;
    for (int64_t o = 0; o < outer && part; o++)
      memcpy(to + (size_t)o * row, (const char *)x->data + (size_t)o * part, part);
    at += x->desc.dim[axis] * inner;
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_OP(concat) = {HN_OP_HEAD,
                 .op_type = "Concat",
                 .since = 1,
                 .flags = HONE_OP_MOVE,
                 HN_INPUTS(1, HONE_VARIADIC),
                 HN_OUTPUTS(1, 1),
                 .types = HN_TYPES_ALL,
                 .attrs = attrs,
                 .infer = infer,
                 .reference = reference,
                 .layouts = HONE_LAST_ALLOWED | HONE_LAST_ALL};
