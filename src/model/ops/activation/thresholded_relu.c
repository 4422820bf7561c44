/* ThresholdedRelu: x above alpha, else 0. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(v > p0 ? v : (T)0)
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  const double param[2] = {hone_node_float(call->node, "alpha", 1), 0};
  return hn_unary(call, &loops, param, error);
}

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT}, HN_CONSUMED_INPUTS, {0}};

HN_OP(thresholded_relu) = {HN_OP_HEAD,
                           .op_type = "ThresholdedRelu",
                           .since = 10,
                           HN_UNARY_ARITY,
                           .types = HN_TYPES_FLOAT,
                           .attrs = attrs,
                           .infer = hn_infer_same,
                           .reference = reference};
