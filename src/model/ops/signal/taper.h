/* Window functions that are sums of cosines: a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N). */
#ifndef HN_MODEL_OPS_TAPER_H
#define HN_MODEL_OPS_TAPER_H

#include "model/ops/common/op.h"

hone_status hn_taper_infer(const hone_infer *io, hone_error *error);
hone_status hn_taper_run(hone_call *call, double a0, double a1, double a2, hone_error *error);
extern const hone_attr_desc hn_taper_attrs[];

#define HN_TAPER_OP(unit, op, a0, a1, a2)                                                                    \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    return hn_taper_run(call, a0, a1, a2, error);                                                            \
  }                                                                                                          \
  HN_OP(unit) = {HN_OP_HEAD,                                                                                 \
                 .op_type = op,                                                                              \
                 .since = 17,                                                                                \
                 HN_INPUTS(1, 1),                                                                            \
                 HN_OUTPUTS(1, 1),                                                                           \
                 .types = HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64),                           \
                 .attrs = hn_taper_attrs,                                                                    \
                 .infer = hn_taper_infer,                                                                    \
                 .reference = reference,                                                                     \
                 .host_inputs = 1u << 0}

/* The dtype that attribute output_datatype names (default f32); NONE when it is no number type. */
hone_dtype hn_output_dtype(const hone_node *node);

#endif
