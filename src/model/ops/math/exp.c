/* Exp: e to the power of x. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(exp, "Exp", 1, HN_FUNCTION(HONE_PW_EXP, 1), exp(v));
