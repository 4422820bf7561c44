/* UnfoldTensor: all slices of `size` elements along an axis, `step` apart; the slices' elements are a new
 * last dimension. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

static hone_status shaped(const hone_node *node, const hone_tensor_desc *x, int32_t *axis,
                          hone_tensor_desc *y, hone_error *error) {
  const int64_t size = hone_node_int(node, "size", 0), step = hone_node_int(node, "step", 1);
  if (x->rank < 1 || x->rank == HONE_MAX_RANK)
    return hn_op_bad(node, error, "the input has rank %d", (int)x->rank);
  const hone_status s = hn_axis(hone_node_int(node, "dim", -1), x->rank, axis, error);
  if (s) return s;
  const int64_t n = x->dim[*axis];
  if (step < 1 || size < 1)
    return hn_op_bad(node, error, "slices of %lld elements, %lld apart", (long long)size, (long long)step);
  if (n >= 0 && size > n)
    return hn_op_bad(node, error, "slices of %lld elements, of %lld", (long long)size, (long long)n);
  *y = *x;
  y->dim[*axis] = n < 0 ? HONE_DIM_UNKNOWN : (n - size) / step + 1;
  y->dim[x->rank] = size;
  y->rank = x->rank + 1;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = {.rank = -1};
  int32_t axis;
  const hone_status s = io->input[0]->rank < 0 ? HONE_OK : shaped(io->node, io->input[0], &axis, &y, error);
  if (!s) hn_infer_set(io, 0, io->input[0]->dtype, y.rank, y.dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor_desc y;
  int32_t axis;
  const hone_status s = shaped(call->node, &x->desc, &axis, &y, error);
  if (s) return s;
  const int64_t size = y.dim[x->desc.rank], step = hone_node_int(call->node, "step", 1);
  const int64_t slices = y.dim[axis], n = x->desc.dim[axis];
  const int64_t inner = hn_dims(&x->desc, axis + 1, x->desc.rank), outer = hn_dims(&x->desc, 0, axis);
  int64_t to = 0;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < slices; k++) {
      const hone_status stopped = hn_call_check(call, error);
      if (stopped) return stopped;
      for (int64_t i = 0; i < inner; i++)
        for (int64_t e = 0; e < size; e++)
          hn_copy_elements(hn_at_mut(call->output[0], to++), hn_at(x, (o * n + k * step + e) * inner + i), 1,
                           x->desc.dtype);
    }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "dim", .type = HONE_ATTR_INT},
                                       {.name = "size", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "step", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(unfold_tensor) = {HONE_DESC_HEAD(hone_op_desc),
                        .domain = "com.microsoft",
                        .op_type = "UnfoldTensor",
                        .since = 1,
                        HN_INPUTS(1, 1),
                        HN_OUTPUTS(1, 1),
                        .types = HN_TYPES_ALL,
                        .attrs = attrs,
                        .infer = infer,
                        .reference = reference};
