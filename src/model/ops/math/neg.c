/* Neg: -x. The lowest signed integer stays as it is, as in two's complement. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(-v)
HN_UNARY_LOOP(i8, int8_t, int8_t, -v)
HN_UNARY_LOOP(i16, int16_t, int16_t, -v)
HN_UNARY_LOOP(i32, int32_t, int32_t, 0u - (uint32_t)v)
HN_UNARY_LOOP(i64, int64_t, int64_t, 0u - (uint64_t)v)
static const hn_unary_loops loops = {.of = {[HONE_DTYPE_F32] = loop_f32,
                                            [HONE_DTYPE_F64] = loop_f64,
                                            [HONE_DTYPE_I8] = loop_i8,
                                            [HONE_DTYPE_I16] = loop_i16,
                                            [HONE_DTYPE_I32] = loop_i32,
                                            [HONE_DTYPE_I64] = loop_i64}};

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_unary(call, &loops, NULL, error);
}

static const hone_attr_desc attrs[] = {HN_CONSUMED_INPUTS, {0}};

HN_OP(neg) = {HN_OP_HEAD,
              .op_type = "Neg",
              .since = 1,
              HN_UNARY_ARITY,
              .types = HN_TYPES_FLOAT | HN_TYPES_SINT,
              .attrs = attrs,
              .infer = hn_infer_same,
              .reference = reference};
