/* Mul: a b; integers wrap. */
#include "model/ops/common/elementwise.h"

HN_BINARY_FLOAT_LOOPS(x *y)
HN_BINARY_WRAP_LOOPS(x *y)
static const hn_binary_loops loops = HN_BINARY_WRAP_TABLE;

HN_BINARY_OP(mul, "Mul", 1, HN_TYPES_NUMBER, HN_FUNCTION(HONE_PW_MUL, 2), hn_infer_binary);
