/* Neg: -x. The lowest signed integer stays as it is, as in two's complement. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(-v)
HN_UNARY_LOOP(i8, int8_t, int8_t, -v)
HN_UNARY_LOOP(i16, int16_t, int16_t, -v)
HN_UNARY_LOOP(i32, int32_t, int32_t, 0u - (uint32_t)v)
HN_UNARY_LOOP(i64, int64_t, int64_t, 0u - (uint64_t)v)
static const hn_unary_loops loops = HN_UNARY_SIGNED_TABLE;

HN_UNARY_PLAIN_OP(neg, "Neg", 1, HN_TYPES_FLOAT | HN_TYPES_SINT, HN_FUNCTION(HONE_PW_NEG, 1));
