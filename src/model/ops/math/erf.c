/* Erf: the error function. Integers (opset 9 only) are computed in f64 and truncated. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(erf(v))
HN_UNARY_LOOP(i8, int8_t, int8_t, erf((double)v))
HN_UNARY_LOOP(i16, int16_t, int16_t, erf((double)v))
HN_UNARY_LOOP(i32, int32_t, int32_t, erf((double)v))
HN_UNARY_LOOP(i64, int64_t, int64_t, erf((double)v))
HN_UNARY_LOOP(u8, uint8_t, uint8_t, erf((double)v))
HN_UNARY_LOOP(u16, uint16_t, uint16_t, erf((double)v))
HN_UNARY_LOOP(u32, uint32_t, uint32_t, erf((double)v))
HN_UNARY_LOOP(u64, uint64_t, uint64_t, erf((double)v))
static const hn_unary_loops loops = HN_UNARY_NUMBER_TABLE;

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_unary(call, &loops, NULL, error);
}

HN_OP(erf) = {HN_OP_HEAD,
              .op_type = "Erf",
              .since = 9,
              HN_UNARY_ARITY,
              .types = HN_TYPES_NUMBER,
              .infer = hn_infer_same,
              .reference = reference,
              .function = HN_FUNCTION(HONE_PW_ERF, 1)};
