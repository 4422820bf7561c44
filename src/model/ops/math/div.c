/* Div: a / b. Integers round towards zero; division by zero is an error, the lowest integer by -1 wraps. */
#include "model/ops/common/elementwise.h"

HN_BINARY_FLOAT_LOOPS(x / y)

HN_DIVISION_LOOP(i8, int8_t, x / y)
HN_DIVISION_LOOP(i16, int16_t, x / y)
HN_DIVISION_LOOP(i32, int32_t, y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y)
HN_DIVISION_LOOP(i64, int64_t, y == -1 ? (int64_t)(0u - (uint64_t)x) : x / y)
HN_DIVISION_LOOP(u8, uint8_t, x / y)
HN_DIVISION_LOOP(u16, uint16_t, x / y)
HN_DIVISION_LOOP(u32, uint32_t, x / y)
HN_DIVISION_LOOP(u64, uint64_t, x / y)
static const hn_binary_loops loops = HN_BINARY_NUMBER_TABLE;

HN_BINARY_OP(div, "Div", 1, HN_TYPES_NUMBER, HN_FUNCTION(HONE_PW_DIV, 2), hn_infer_binary);
