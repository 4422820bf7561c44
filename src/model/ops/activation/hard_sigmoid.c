/* HardSigmoid: clip(alpha x + beta, 0, 1). */
#include "model/ops/common/elementwise.h"

/* NaN passes, as it does through the kernels. */
HN_UNARY_FLOAT_LOOPS(p0 *v + p1 > 1 ? 1 : p0 * v + p1 < 0 ? 0 : p0 * v + p1)
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  const double param[2] = {hone_node_float(call->node, "alpha", 0.2f),
                           hone_node_float(call->node, "beta", 0.5f)};
  return hn_unary(call, &loops, param, error);
}

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT},
                                       {.name = "beta", .type = HONE_ATTR_FLOAT},
                                       HN_CONSUMED_INPUTS,
                                       {0}};

HN_OP(hard_sigmoid) = {HN_OP_HEAD,
                       .op_type = "HardSigmoid",
                       .since = 1,
                       HN_UNARY_ARITY,
                       .types = HN_TYPES_FLOAT,
                       .attrs = attrs,
                       .infer = hn_infer_same,
                       .reference = reference,
                       .function = &(const hone_function){.op = HONE_PW_HARDSIGMOID,
                                                          .operands = 1,
                                                          .alpha = "alpha",
                                                          .beta = "beta",
                                                          .alpha_otherwise = 0.2f,
                                                          .beta_otherwise = 0.5f}};
