/* Abs: the absolute value. The lowest signed integer stays as it is, as in two's complement. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(fabs(v))
HN_UNARY_LOOP(i8, int8_t, int8_t, v < 0 ? -v : v)
HN_UNARY_LOOP(i16, int16_t, int16_t, v < 0 ? -v : v)
HN_UNARY_LOOP(i32, int32_t, int32_t, v < 0 ? 0u - (uint32_t)v : (uint32_t)v)
HN_UNARY_LOOP(i64, int64_t, int64_t, v < 0 ? 0u - (uint64_t)v : (uint64_t)v)
HN_UNARY_LOOP(u8, uint8_t, uint8_t, v)
HN_UNARY_LOOP(u16, uint16_t, uint16_t, v)
HN_UNARY_LOOP(u32, uint32_t, uint32_t, v)
HN_UNARY_LOOP(u64, uint64_t, uint64_t, v)
static const hn_unary_loops loops = HN_UNARY_NUMBER_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_unary(call, &loops, NULL, error);
}

static const hone_attr_desc attrs[] = {HN_CONSUMED_INPUTS, {0}};

HN_OP(abs) = {HN_OP_HEAD,
              .op_type = "Abs",
              .since = 1,
              HN_UNARY_ARITY,
              .types = HN_TYPES_NUMBER,
              .attrs = attrs,
              .infer = hn_infer_same,
              .reference = reference};
