/* Ceil: the smallest integer that is not below x. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(ceil, "Ceil", 1, HN_FUNCTION(HONE_PW_CEIL, 1), ceil(v));
