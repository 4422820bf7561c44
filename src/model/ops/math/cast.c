/* Cast: elements in another dtype. Before opset 6 its name says which. */
#include "model/ops/math/cast_core.h"

#include "model/ir/cast_names.h"

static hone_dtype target(const hone_node *node) {
  const char *name = hone_node_opset(node) < 6 ? hone_node_string(node, "to", NULL) : NULL;
  if (name) return hn_cast_named(name);
  int64_t to = hone_node_int(node, "to", 0);
  return to > 0 && to < HONE_DTYPE_COUNT ? (hone_dtype)to : HONE_DTYPE_NONE;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_dtype to = target(io->node);
  if (to == HONE_DTYPE_NONE && hone_node_string(io->node, "to", NULL))
    return hn_op_refuse(io->node, error, "to \"%.40s\"", hone_node_string(io->node, "to", ""));
  if (to == HONE_DTYPE_NONE || to == HONE_DTYPE_C64 || to == HONE_DTYPE_C128)
    return hn_op_refuse(io->node, error, "to dtype number %lld", (long long)hone_node_int(io->node, "to", 0));
  hn_infer_set(io, 0, to, io->input[0]->rank, io->input[0]->dim);
  return hn_cast_check(io->node, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_cast_run(call, call->input[0], call->output[0], error);
}

static const hone_attr_desc attrs[] = {
    {.name = "to", .type = HONE_ATTR_STRING, .required = true, .until = 5},
    {.name = "to", .type = HONE_ATTR_INT, .required = true},       /* since opset 6; passes have it in any */
    {.name = "saturate", .type = HONE_ATTR_INT, .since = 19},      /* float8 only */
    {.name = "round_mode", .type = HONE_ATTR_STRING, .since = 24}, /* float8 only */
    {0}};

HN_OP(cast) = {HN_OP_HEAD,
               .op_type = "Cast",
               .since = 1,
               .flags = HONE_OP_POINTWISE,
               HN_INPUTS(1, 1),
               HN_OUTPUTS(1, 1),
               .types = HN_TYPES_ALL | HN_TYPES_NARROW,
               .attrs = attrs,
               .infer = infer,
               .reference = reference};
