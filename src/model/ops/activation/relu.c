/* Relu: max(0, x); NaN stays NaN. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(v < 0 ? (T)0 : v)
HN_UNARY_LOOP(i8, int8_t, int8_t, v < 0 ? 0 : v)
HN_UNARY_LOOP(i16, int16_t, int16_t, v < 0 ? 0 : v)
HN_UNARY_LOOP(i32, int32_t, int32_t, v < 0 ? 0 : v)
HN_UNARY_LOOP(i64, int64_t, int64_t, v < 0 ? 0 : v)
static const hn_unary_loops loops = HN_UNARY_SIGNED_TABLE;

HN_UNARY_PLAIN_OP(relu, "Relu", 1, HN_TYPES_FLOAT | HN_TYPES_SINT, HN_FUNCTION(HONE_PW_RELU, 1));
