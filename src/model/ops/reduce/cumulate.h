/* Running sums and products along an axis, with or without the own element, from either end. Floats
 * accumulate in f64, integers wrap. */
#ifndef HN_MODEL_OPS_CUMULATE_H
#define HN_MODEL_OPS_CUMULATE_H

#include "model/ops/common/op.h"

hone_status hn_cumulate_infer(const hone_infer *io, hone_error *error);
hone_status hn_cumulate_run(hone_call *call, bool product, hone_error *error);

#define HN_CUMULATE_TYPES                                                                                    \
  (HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64) | HONE_TYPES(HONE_DTYPE_U32) |   \
   HONE_TYPES(HONE_DTYPE_U64))

/* The whole file of an operator of this kind. */
#define HN_CUMULATE_OP(unit, onnx_type, first, product)                                                      \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    return hn_cumulate_run(call, product, error);                                                            \
  }                                                                                                          \
  static const hone_attr_desc attrs[] = {                                                                    \
      {.name = "exclusive", .type = HONE_ATTR_INT}, {.name = "reverse", .type = HONE_ATTR_INT}, {0}};        \
  HN_OP(unit) = {HN_OP_HEAD,                                                                                 \
                 .op_type = onnx_type,                                                                       \
                 .since = first,                                                                             \
                 HN_INPUTS(2, 2),                                                                            \
                 HN_OUTPUTS(1, 1),                                                                           \
                 .types = HN_CUMULATE_TYPES,                                                                 \
                 .attrs = attrs,                                                                             \
                 .infer = hn_cumulate_infer,                                                                 \
                 .reference = reference,                                                                     \
                 .host_inputs = 1u << 1}

#endif
