/* Sinh: hyperbolic sine. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(sinh, "Sinh", 9, sinh(v));
