/* Selu: gamma x above zero, gamma (alpha exp(x) - alpha) below. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(p1 *(v <= 0 ? p0 * exp(v) - p0 : v))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  bool old = hone_node_opset(call->node) < 6; /* the defaults gained digits in opset 6 */
  const double param[2] = {hone_node_float(call->node, "alpha", old ? 1.6732f : 1.67326319217681884765625f),
                           hone_node_float(call->node, "gamma", old ? 1.0507f : 1.05070102214813232421875f)};
  return hn_unary(call, &loops, param, error);
}

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT},
                                       {.name = "gamma", .type = HONE_ATTR_FLOAT},
                                       HN_CONSUMED_INPUTS,
                                       {0}};

HN_OP(selu) = {HN_OP_HEAD,
               .op_type = "Selu",
               .since = 1,
               HN_UNARY_ARITY,
               .types = HN_TYPES_FLOAT,
               .attrs = attrs,
               .infer = hn_infer_same,
               .reference = reference,
               .function = &(const hone_function){.op = HONE_PW_SELU,
                                                  .operands = 1,
                                                  .alpha = "alpha",
                                                  .beta = "gamma",
                                                  .alpha_otherwise = 1.67326319217681884765625f,
                                                  .beta_otherwise = 1.05070102214813232421875f}};
