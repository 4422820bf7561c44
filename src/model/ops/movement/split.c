/* Split: parts along one axis, of the given sizes or equal. From opset 18 on the last equal part may be
 * smaller. */
#include "model/ops/common/convert.h"
#include "model/ops/common/move.h"

/* Where the sizes come from: the attribute, input 1, or nowhere. *known false: given but not known. */
static const int64_t *sizes(const hone_node *node, const hone_tensor *input, size_t *n) {
  if (hone_node_opset(node) < 13) return hone_node_ints(node, "split", n);
  *n = input ? (size_t)hn_count(input) : 0;
  return input ? input->data : NULL;
}

/* Size of part i of dim > 0 elements in n equal parts. */
static int64_t equal_part(int64_t dim, uint32_t n, uint32_t i) {
  int64_t part = dim / n + (dim % n != 0), start;
  if (__builtin_mul_overflow(part, (int64_t)i, &start) || start >= dim) return 0;
  return dim - start < part ? dim - start : part;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  bool by_input = hone_node_opset(io->node) >= 13 && hn_has_input(io, 1);
  const hone_tensor *value = by_input ? io->value[1] : NULL;
  if (by_input && io->input[1]->dtype && io->input[1]->dtype != HONE_DTYPE_I64)
    return hn_op_bad(io->node, error, "split is %s, not i64", hone_dtype_name(io->input[1]->dtype));
  if (hone_node_opset(io->node) < 13 && hn_has_input(io, 1)) /* opset 1 has them as numbers of x's type */
    return hn_op_refuse(io->node, error, "sizes as an input");
  int32_t axis = 0;
  if (x->rank >= 0) {
    hone_status status = hn_axis(hone_node_int(io->node, "axis", 0), x->rank, &axis, error);
    if (status) return status;
  }
  size_t n = 0;
  const int64_t *size = sizes(io->node, value, &n);
  bool equal = !by_input && n == 0;
  int64_t wanted = hone_node_int(io->node, "num_outputs", io->n_outputs), total = 0,
          dim = x->rank > 0 ? x->dim[axis] : -1;
  if (equal && wanted != io->n_outputs)
    return hn_op_bad(io->node, error, "num_outputs is %lld, the node has %u", (long long)wanted,
                     io->n_outputs);
  if (!equal && (value || !by_input) && n != io->n_outputs)
    return hn_op_bad(io->node, error, "%zu sizes for %u outputs", n, io->n_outputs);
  if (equal && dim >= 0 && hone_node_opset(io->node) < 18 && dim % io->n_outputs)
    return hn_op_bad(io->node, error, "%lld elements do not split into %u equal parts", (long long)dim,
                     io->n_outputs);
  for (uint32_t i = 0; i < io->n_outputs; i++) {
    int64_t d[HONE_MAX_RANK];
    for (int32_t k = 0; k < x->rank; k++) d[k] = x->dim[k];
    int64_t part = equal ? (dim < 0 ? -1 : equal_part(dim, io->n_outputs, i)) : size && n ? size[i] : -1;
    if (!equal && size && n && (part < 0 || __builtin_add_overflow(total, part, &total)))
      return hn_op_bad(io->node, error, "size %u is %lld", i, (long long)part);
    if (x->rank > 0) d[axis] = equal && io->n_outputs == 1 ? x->dim[axis] : part;
    hn_infer_set(io, i, x->dtype, x->rank, d);
  }
  if (!equal && size && n && dim >= 0 && total != dim)
    return hn_op_bad(io->node, error, "the sizes add up to %lld, the dimension has %lld", (long long)total,
                     (long long)dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  int32_t axis;
  hone_status status = hn_axis(hone_node_int(call->node, "axis", 0), x->desc.rank, &axis, error);
  if (status) return status;
  size_t n = 0, element = hone_dtype_size(x->desc.dtype);
  bool by_input = hone_node_opset(call->node) >= 13 && hn_call_has(call, 1);
  const int64_t *size = sizes(call->node, by_input ? call->input[1] : NULL, &n);
  int64_t outer = hn_product(x->desc.dim, 0, axis), inner = hn_product(x->desc.dim, axis + 1, x->desc.rank),
          at = 0;
  if (hn_count(x) == 0) return HONE_OK;
  size_t row = (size_t)(x->desc.dim[axis] * inner) * element;
  for (uint32_t i = 0; i < call->n_outputs; i++) {
    int64_t length = n ? size[i] : equal_part(x->desc.dim[axis], call->n_outputs, i);
    size_t part = (size_t)(length * inner) * element;
    const char *from = (const char *)x->data + (size_t)at * element;
    at += length * inner;
    if (!call->output[i]) continue;
    status = hn_call_check(call, error);
    if (status) return status;
    for (int64_t o = 0; o < outer && part; o++)
      memcpy((char *)call->output[i]->data + (size_t)o * part, from + (size_t)o * row, part);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT, .required = true, .until = 1},
                                       {.name = "axis", .type = HONE_ATTR_INT, .since = 2},
                                       {.name = "split", .type = HONE_ATTR_INTS, .until = 12},
                                       {.name = "num_outputs", .type = HONE_ATTR_INT, .since = 18},
                                       {0}};

HN_OP(split) = {HN_OP_HEAD,
                .op_type = "Split",
                .since = 1,
                .flags = HONE_OP_MOVE,
                HN_INPUTS(1, 2),
                HN_OUTPUTS(1, HONE_VARIADIC),
                .types = HN_TYPES_ALL,
                .attrs = attrs,
                .infer = infer,
                .reference = reference,
                .host_inputs = 1u << 1,
                .layouts = HONE_LAST_ALLOWED};
