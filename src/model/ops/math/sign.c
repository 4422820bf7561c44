/* Sign: -1, 0 or 1; NaN stays NaN. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(v > 0 ? (T)1 : v < 0 ? (T)-1 : v == 0 ? (T)0 : v)
HN_UNARY_LOOP(i8, int8_t, int8_t, (v > 0) - (v < 0))
HN_UNARY_LOOP(i16, int16_t, int16_t, (v > 0) - (v < 0))
HN_UNARY_LOOP(i32, int32_t, int32_t, (v > 0) - (v < 0))
HN_UNARY_LOOP(i64, int64_t, int64_t, (v > 0) - (v < 0))
HN_UNARY_LOOP(u8, uint8_t, uint8_t, v != 0)
HN_UNARY_LOOP(u16, uint16_t, uint16_t, v != 0)
HN_UNARY_LOOP(u32, uint32_t, uint32_t, v != 0)
HN_UNARY_LOOP(u64, uint64_t, uint64_t, v != 0)
static const hn_unary_loops loops = HN_UNARY_NUMBER_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_unary(call, &loops, NULL, error);
}

HN_OP(sign) = {HN_OP_HEAD,
               .op_type = "Sign",
               .since = 9,
               HN_UNARY_ARITY,
               .types = HN_TYPES_NUMBER,
               .infer = hn_infer_same,
               .reference = reference,
               .function = HN_FUNCTION(HONE_PW_SIGN, 1)};
