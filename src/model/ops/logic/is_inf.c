/* IsInf: true where an element is infinite with one of the wanted signs. */
#include "model/ops/common/elementwise.h"

/* p0: count +infinity, p1: count -infinity. What is not counted is compared with NaN. */
HN_UNARY_LOOP(f32, float, uint8_t, (v == p0) | (v == p1))
HN_UNARY_LOOP(f64, double, uint8_t, (v == p0) | (v == p1))
static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  const double param[2] = {hone_node_int(call->node, "detect_positive", 1) ? (double)INFINITY : (double)NAN,
                           hone_node_int(call->node, "detect_negative", 1) ? -(double)INFINITY : (double)NAN};
  return hn_unary(call, &loops, param, error);
}

static const hone_attr_desc attrs[] = {{.name = "detect_positive", .type = HONE_ATTR_INT},
                                       {.name = "detect_negative", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(is_inf) = {
    HN_OP_HEAD,     .op_type = "IsInf",     .since = 10,           HN_UNARY_ARITY, .types = HN_TYPES_FLOAT,
    .attrs = attrs, .infer = hn_infer_test, .reference = reference};
