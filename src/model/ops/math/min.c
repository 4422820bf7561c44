/* Min: the smallest of all operands; NaN wins. */
#include "model/ops/common/elementwise.h"

HN_BINARY_FLOAT_LOOPS(x < y || x != x ? x : y)
HN_BINARY_INT_LOOPS(x < y ? x : y)
static const hn_binary_loops loops = HN_BINARY_NUMBER_TABLE;

HN_VARIADIC_OP(min, "Min", HN_TYPES_NUMBER, HN_FUNCTION(HONE_PW_MIN, 0));
