/* Reciprocal: 1 / x. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(reciprocal, "Reciprocal", 1, HN_FUNCTION(HONE_PW_RECIPROCAL, 1), (T)1 / v);
