/* Constant: a tensor from an attribute; exactly one of them is given. */
#include "model/ops/common/op.h"

/* The value as a tensor that borrows from the model, or desc.dtype NONE. one holds a scalar. */
static hone_tensor value_of(const hone_node *node, void *one) {
  const hone_tensor *t = hone_node_tensor(node, "value");
  if (t) return *t;
  hone_tensor v = {.data = one};
  size_t n;
  int64_t dim;
  if (hone_node_has(node, "value_float")) {
    v.desc = hone_desc(HONE_DTYPE_F32, 0, NULL);
    *(float *)one = hone_node_float(node, "value_float", 0);
  } else if (hone_node_has(node, "value_int")) {
    v.desc = hone_desc(HONE_DTYPE_I64, 0, NULL);
    *(int64_t *)one = hone_node_int(node, "value_int", 0);
  } else if (hone_node_has(node, "value_string")) {
    const char *s = hone_node_string(node, "value_string", "");
    v.desc = hone_desc(HONE_DTYPE_STRING, 0, NULL);
    *(hone_string *)one = (hone_string){s, strlen(s)};
  } else if (hone_node_has(node, "value_floats")) {
    v.data = (void *)hone_node_floats(node, "value_floats", &n);
    v.desc = hone_desc(HONE_DTYPE_F32, 1, (dim = (int64_t)n, &dim));
  } else if (hone_node_has(node, "value_ints")) {
    v.data = (void *)hone_node_ints(node, "value_ints", &n);
    v.desc = hone_desc(HONE_DTYPE_I64, 1, (dim = (int64_t)n, &dim));
  } else if (hone_node_has(node, "value_strings")) {
    v.data = (void *)hone_node_strings(node, "value_strings", &n);
    v.desc = hone_desc(HONE_DTYPE_STRING, 1, (dim = (int64_t)n, &dim));
  }
  return v;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_string one;
  hone_tensor v = value_of(io->node, &one);
  if (v.desc.dtype == HONE_DTYPE_NONE) return hn_op_bad(io->node, error, "no value is given");
  hn_infer_set(io, 0, v.desc.dtype, v.desc.rank, v.desc.dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  hone_string one;
  hone_tensor v = value_of(call->node, &one);
  hn_copy_elements(call->output[0]->data, v.data, hn_count(&v), v.desc.dtype);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "value", .type = HONE_ATTR_TENSOR},
                                       {.name = "value_float", .type = HONE_ATTR_FLOAT, .since = 12},
                                       {.name = "value_floats", .type = HONE_ATTR_FLOATS, .since = 12},
                                       {.name = "value_int", .type = HONE_ATTR_INT, .since = 12},
                                       {.name = "value_ints", .type = HONE_ATTR_INTS, .since = 12},
                                       {.name = "value_string", .type = HONE_ATTR_STRING, .since = 12},
                                       {.name = "value_strings", .type = HONE_ATTR_STRINGS, .since = 12},
                                       {0}};

HN_OP(constant) = {
    HN_OP_HEAD,       .op_type = "Constant", .since = 1,     .flags = HONE_OP_MOVE, HN_INPUTS(0, 0),
    HN_OUTPUTS(1, 1), .types = HN_TYPES_ALL, .attrs = attrs, .infer = infer,        .reference = reference};
