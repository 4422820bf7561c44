/* Normalisation of input + skip + bias, row by row of the last dimension: what SkipLayerNormalization and
 * SkipSimplifiedLayerNormalization share. Inputs: input, skip, gamma, then (beta and) bias. Outputs: the
 * result, mean, inverse deviation, input + skip + bias. */
#ifndef HN_MODEL_OPS_MICROSOFT_SKIP_NORM_H
#define HN_MODEL_OPS_MICROSOFT_SKIP_NORM_H

#include "model/ops/microsoft/common/inner.h"

/* beta: the input with it, 0: there is none, and no mean is subtracted. */
hone_status hn_skip_norm_infer(const hone_infer *io, uint32_t beta, hone_error *error);
hone_status hn_skip_norm_run(hone_call *call, uint32_t beta, hone_error *error);
void hn_skip_norm_cost(const hone_infer *io, hone_cost *cost);

extern const hone_attr_desc hn_skip_norm_attrs[];

/* The whole file of such an operator. */
#define HN_SKIP_NORM_OP(unit, type, beta, most)                                                              \
  static hone_status infer(const hone_infer *io, hone_error *error) {                                        \
    return hn_skip_norm_infer(io, beta, error);                                                              \
  }                                                                                                          \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    return hn_skip_norm_run(call, beta, error);                                                              \
  }                                                                                                          \
  HN_OP(unit) = {HONE_DESC_HEAD(hone_op_desc),                                                               \
                 .domain = "com.microsoft",                                                                  \
                 .op_type = type,                                                                            \
                 .since = 1,                                                                                 \
                 HN_INPUTS(3, most),                                                                         \
                 HN_OUTPUTS(1, 4),                                                                           \
                 .types = HN_TYPES_FLOAT,                                                                    \
                 .attrs = hn_skip_norm_attrs,                                                                \
                 .infer = infer,                                                                             \
                 .cost = hn_skip_norm_cost,                                                                  \
                 .reference = reference}

#endif
