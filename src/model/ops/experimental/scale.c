/* Scale: x times the attribute. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(p0 *v)
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  const double param[2] = {hone_node_float(call->node, "scale", 1), 0};
  return hn_unary(call, &loops, param, error);
}

static const hone_attr_desc attrs[] = {{.name = "scale", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(scale) = {HN_OP_HEAD,     .op_type = "Scale",     .since = 1,
                .until = 9,     HN_UNARY_ARITY,         .types = HN_TYPES_FLOAT,
                .attrs = attrs, .infer = hn_infer_same, .reference = reference};
