/* Models of older opsets as models of opset 13: operators whose form changed in between get the new one. */
#include "improve/quantize/quantize.h"

#include "base/error.h"

#include <string.h>

enum { OLDEST = 7, OPSET = 13, IR = 7 };

static hone_status refuse(const hone_node *n, const char *why, hone_error *error) {
  hn_fail(error, HONE_ERROR_UNSUPPORTED, "%s of opset %d: %s", n->op_type, (int)n->opset, why);
  hn_error_where(error, "node '%s'", n->name);
  hn_error_hint(error, "quantised models need opset 13: convert the model (onnx.version_converter)");
  return HONE_ERROR_UNSUPPORTED;
}

static hone_status no_memory(hone_error *error) { return hn_fail_memory(error, 0, "a newer opset"); }

/* An attribute becomes input `index`, a constant. */
static hone_status put(hone_node *n, uint32_t index, const hone_tensor_desc *d, const void *data,
                       hone_error *error) {
  hn_value *v = hn_value_constant(n->graph, NULL, d, data, true);
  while (v && n->n_in < index)
    if (!hn_node_set_input(n, n->n_in, NULL)) return no_memory(error);
  return v && hn_node_set_input(n, index, v) ? HONE_OK : no_memory(error);
}

static hone_status ints_to_input(hone_node *n, const char *attr, uint32_t index, hone_error *error) {
  size_t count;
  const int64_t *v = hone_node_ints(n, attr, &count), len = (int64_t)count;
  if (!v) return HONE_OK;
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &len);
  hone_status status = put(n, index, &d, v, error);
  if (status == HONE_OK) hn_node_drop_attr(n, attr);
  return status;
}

static hone_status float_to_input(hone_node *n, const char *attr, uint32_t index, hone_error *error) {
  const float v = hone_node_float(n, attr, 0);
  if (!hn_node_attr(n, attr)) return HONE_OK;
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 0, NULL);
  hone_status status = put(n, index, &d, &v, error);
  if (status == HONE_OK) hn_node_drop_attr(n, attr);
  return status;
}

/* Rows were all dimensions from `axis` on; they are those along it now. The same where the others are 1. */
static hone_status rows(hone_node *n, hone_error *error) {
  const hone_tensor_desc *d = &n->in[0]->desc;
  int64_t axis = hone_node_int(n, "axis", 1);
  if (d->rank < 0) return refuse(n, "the rank of its input is not known", error);
  if (axis < 0) axis += d->rank;
  for (int64_t k = axis + 1; k < d->rank; k++)
    if (d->dim[k] != 1) return refuse(n, "its rows are several dimensions", error);
  return axis < d->rank ? hn_node_set_int(n, "axis", axis) ? HONE_OK : no_memory(error)
                        : refuse(n, "its rows are single numbers", error);
}

static hone_status convert(hone_node *n, hone_error *error) {
  static const char *const others[] = {"Upsample", "Scatter", "Scan", "Hardmax", NULL};
  hone_status status = HONE_OK;
  if (hn_is_op(n, "Clip")) {
    if ((status = float_to_input(n, "min", 1, error)) == HONE_OK) status = float_to_input(n, "max", 2, error);
  } else if (hn_is_op(n, "Squeeze") || hn_is_op(n, "Unsqueeze") || hn_is_op(n, "ReduceSum")) {
    status = ints_to_input(n, "axes", 1, error);
  } else if (hn_is_op(n, "Split")) {
    status = ints_to_input(n, "split", 1, error);
  } else if (hn_is_op(n, "Slice")) {
    const bool axes = hn_node_attr(n, "axes") != NULL;
    status = ints_to_input(n, "starts", 1, error);
    if (status == HONE_OK) status = ints_to_input(n, "ends", 2, error);
    if (status == HONE_OK && axes) status = ints_to_input(n, "axes", 3, error);
  } else if (hn_is_op(n, "Pad")) {
    status = ints_to_input(n, "pads", 1, error);
    if (status == HONE_OK) status = float_to_input(n, "value", 2, error);
  } else if (hn_is_op(n, "TopK") && hn_node_attr(n, "k")) {
    const int64_t k = hone_node_int(n, "k", 0), one = 1;
    const hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &one);
    if ((status = put(n, 1, &d, &k, error)) == HONE_OK) hn_node_drop_attr(n, "k");
  } else if (hn_is_op(n, "Dropout")) {
    hn_node_drop_attr(n, "ratio"); /* of training only */
  } else if (hn_is_op(n, "Softmax") || hn_is_op(n, "LogSoftmax")) {
    status = rows(n, error);
  } else if (hn_is_op(n, "BatchNormalization") && hone_node_int(n, "spatial", 1) == 0) {
    status = refuse(n, "statistics of every activation", error);
  } else if (hn_is_op(n, "BatchNormalization") && n->n_out > 1) {
    status = refuse(n, "its outputs were others in training", error);
  } else if (hn_is_op(n, "BatchNormalization")) {
    hn_node_drop_attr(n, "spatial");
  } else if (hn_is_op(n, "Resize") && n->opset < 11) {
    status = refuse(n, "coordinates were counted otherwise", error);
  }
  for (const char *const *o = others; *o && status == HONE_OK; o++)
    if (hn_is_op(n, *o)) status = refuse(n, "it is another operator today", error);
  for (uint32_t k = 0; k < n->n_attr && status == HONE_OK; k++)
    if (n->attr[k].type == HONE_ATTR_GRAPH)
      for (hone_node *in = n->attr[k].g->first; in && status == HONE_OK; in = in->next)
        status = convert(in, error);
  return status;
}

hone_status hn_quantize_raise_opset(hn_model *m, hone_error *error) {
  const int64_t have = hn_model_opset(m, "");
  if (m->ir_version < IR) m->ir_version = IR;
  if (have >= OPSET) return HONE_OK;
  if (have < OLDEST) {
    hn_fail(error, HONE_ERROR_UNSUPPORTED, "the model is of opset %lld, whose operators mean other things",
            (long long)have);
    hn_error_expected(error, "opset %d or newer", OLDEST);
    hn_error_hint(error, "convert the model first (onnx.version_converter)");
    return HONE_ERROR_UNSUPPORTED;
  }
  hone_status status = HONE_OK;
  for (hone_node *n = m->graph->first; n && status == HONE_OK; n = n->next) {
    status = convert(n, error);
    n->op = NULL; /* as of the new opset */
  }
  for (size_t i = 0; i < m->opsets.len; i++)
    if (!m->opsets.ptr[i].domain[0]) m->opsets.ptr[i].version = OPSET;
  return status;
}
