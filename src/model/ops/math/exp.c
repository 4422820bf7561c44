/* Exp: e to the power of x. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(exp, "Exp", 1, exp(v));
