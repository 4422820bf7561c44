/* Operators on codes that are a float operator between DequantizeLinear and QuantizeLinear: their inference,
 * cost and reference are those of the float operator. All scales and zero points are single numbers. */
#ifndef HN_MODEL_OPS_FLOAT_FORM_H
#define HN_MODEL_OPS_FLOAT_FORM_H

#include "model/ops/quantized/quant.h"

hone_status hn_float_form_infer(const hone_infer *io, hone_error *error);
void hn_float_form_cost(const hone_infer *io, hone_cost *cost);
hone_status hn_float_form_reference(hone_call *call, hone_error *error);

/* Defines an operator of com.microsoft. form: initialisers of its hone_float_form; the rest: of its
 * descriptor. */
#define HN_FORM(...)                                                                                         \
  &(const hone_float_form) { __VA_ARGS__ }
#define HN_FLOAT_FORM_OP(name, type, form, ...)                                                              \
  HN_OP(name) = {HONE_DESC_HEAD(hone_op_desc),                                                               \
                 .domain = "com.microsoft",                                                                  \
                 .op_type = type,                                                                            \
                 .since = 1,                                                                                 \
                 HN_OUTPUTS(1, 1),                                                                           \
                 .infer = hn_float_form_infer,                                                               \
                 .cost = hn_float_form_cost,                                                                 \
                 .reference = hn_float_form_reference,                                                       \
                 .flags = HONE_OP_CODES,                                                                     \
                 .float_form = form,                                                                         \
                 __VA_ARGS__}
#define HN_TYPES_CODES (HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8))

#endif
