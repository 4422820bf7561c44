/* Lists of integers from attributes or inputs. */
#include "model/ops/common/axes.h"

static hone_status from_attr(const hone_node *node, const char *attr, hn_list *out, hone_error *error) {
  size_t n;
  const int64_t *v = hone_node_ints(node, attr, &n);
  *out = (hn_list){.given = hone_node_has(node, attr), .known = true};
  if (n > 2 * HONE_MAX_RANK) return hn_op_refuse(node, error, "%s has %zu entries", attr, n);
  out->n = (int32_t)n;
  if (n) memcpy(out->at, v, n * sizeof *v);
  return HONE_OK;
}

static hone_status from_tensor(const hone_node *node, const hone_tensor *t, uint32_t index, hn_list *out,
                               hone_error *error) {
  *out = (hn_list){.given = true, .known = t != NULL};
  if (!t) return HONE_OK;
  if (t->desc.dtype != HONE_DTYPE_I64 && t->desc.dtype != HONE_DTYPE_I32)
    return hn_op_bad(node, error, "input %u is %s", index, hone_dtype_name(t->desc.dtype));
  int64_t n = hn_tensor_ints(t, out->at, 2 * HONE_MAX_RANK);
  if (n < 0) return hn_op_refuse(node, error, "input %u has more than %d entries", index, 2 * HONE_MAX_RANK);
  out->n = (int32_t)n;
  return HONE_OK;
}

hone_status hn_list_infer(const hone_infer *io, const char *attr, int32_t moved, uint32_t index, hn_list *out,
                          hone_error *error) {
  if (hone_node_opset(io->node) < moved) return from_attr(io->node, attr, out, error);
  *out = (hn_list){.known = true};
  return hn_has_input(io, index) ? from_tensor(io->node, io->value[index], index, out, error) : HONE_OK;
}

hone_status hn_list_call(const hone_call *call, const char *attr, int32_t moved, uint32_t index, hn_list *out,
                         hone_error *error) {
  if (hone_node_opset(call->node) < moved) return from_attr(call->node, attr, out, error);
  *out = (hn_list){.known = true};
  return hn_call_has(call, index) ? from_tensor(call->node, call->input[index], index, out, error) : HONE_OK;
}

hone_status hn_list_axes(const hone_node *node, hn_list *axes, int32_t rank, hone_error *error) {
  bool seen[2 * HONE_MAX_RANK] = {false};
  for (int32_t i = 0; i < axes->n; i++) {
    int32_t axis;
    hone_status status = hn_axis(axes->at[i], rank, &axis, error);
    if (status) return status;
    if (seen[axis]) return hn_op_bad(node, error, "axis %d is given twice", axis);
    seen[axis] = true;
    axes->at[i] = axis;
  }
  return HONE_OK;
}

hone_status hn_scalar_infer(const hone_infer *io, uint32_t i, const hone_tensor **value, hone_error *error) {
  *value = NULL;
  if (!hn_has_input(io, i)) return HONE_OK;
  const hone_tensor *v = io->value[i];
  hone_dtype t = v ? v->desc.dtype : io->input[i]->dtype;
  if (t && !(HN_TYPES_NUMBER & HONE_TYPES(t)))
    return hn_op_bad(io->node, error, "input %u is %s", i, hone_dtype_name(t));
  int64_t n = v ? hn_count(v) : hone_desc_count(io->input[i]);
  if (n >= 0 && n != 1)
    return hn_op_bad(io->node, error, "input %u holds %lld elements, not one", i, (long long)n);
  *value = v;
  return HONE_OK;
}
