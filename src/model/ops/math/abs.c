/* Abs: the absolute value. The lowest signed integer stays as it is, as in two's complement. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FLOAT_LOOPS(fabs(v))
HN_UNARY_LOOP(i8, int8_t, int8_t, v < 0 ? -v : v)
HN_UNARY_LOOP(i16, int16_t, int16_t, v < 0 ? -v : v)
HN_UNARY_LOOP(i32, int32_t, int32_t, v < 0 ? 0u - (uint32_t)v : (uint32_t)v)
/* Without a choice, which compilers make a jump of. */
HN_UNARY_LOOP(i64, int64_t, int64_t, ((uint64_t)v ^ (0 - ((uint64_t)v >> 63))) + ((uint64_t)v >> 63))
HN_UNARY_LOOP(u8, uint8_t, uint8_t, v)
HN_UNARY_LOOP(u16, uint16_t, uint16_t, v)
HN_UNARY_LOOP(u32, uint32_t, uint32_t, v)
HN_UNARY_LOOP(u64, uint64_t, uint64_t, v)
static const hn_unary_loops loops = HN_UNARY_NUMBER_TABLE;

HN_UNARY_PLAIN_OP(abs, "Abs", 1, HN_TYPES_NUMBER, HN_FUNCTION(HONE_PW_ABS, 1));
