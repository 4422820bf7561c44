/* Operators that ONNX had on trial until opset 9, which old exporters (Core ML, Caffe2) wrote. */
#ifndef HN_MODEL_OPS_EXPERIMENTAL_H
#define HN_MODEL_OPS_EXPERIMENTAL_H

#include "model/ops/common/elementwise.h"

/* The whole file of one that is a formula of the attributes alpha (p0) and beta (p1). */
#define HN_EXPERIMENTAL_OP(unit, onnx_type, must, a, b, expr)                                                \
  HN_UNARY_FLOAT_LOOPS(expr)                                                                                 \
  static const hn_unary_loops loops = HN_UNARY_FLOAT_TABLE;                                                  \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    const double param[2] = {hone_node_float(call->node, "alpha", a),                                        \
                             hone_node_float(call->node, "beta", b)};                                        \
    return hn_unary(call, &loops, param, error);                                                             \
  }                                                                                                          \
  static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT, .required = must},       \
                                         {.name = "beta", .type = HONE_ATTR_FLOAT, .required = must},        \
                                         {0}};                                                               \
  HN_OP(unit) = {HN_OP_HEAD,     .op_type = onnx_type,   .since = 1,                                         \
                 .until = 9,     HN_UNARY_ARITY,         .types = HN_TYPES_FLOAT,                            \
                 .attrs = attrs, .infer = hn_infer_same, .reference = reference}

#endif
