/* QuickGelu: x / (1 + exp(-alpha x)). */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(v / ((T)1 + exp(-p0 * v)))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  const double param[2] = {(double)hone_node_float(call->node, "alpha", 1.702f), 0};
  return hn_unary(call, &loops, param, error);
}

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(quick_gelu) = {HONE_DESC_HEAD(hone_op_desc),
                     .domain = "com.microsoft",
                     .op_type = "QuickGelu",
                     .since = 1,
                     HN_UNARY_ARITY,
                     .types = HN_TYPES_FLOAT,
                     .attrs = attrs,
                     .infer = hn_infer_same,
                     .reference = reference,
                     .function = &(const hone_function){
                         .op = HONE_PW_SILU, .operands = 1, .alpha = "alpha", .alpha_otherwise = 1.702f}};
