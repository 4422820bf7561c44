/* Asinh: inverse hyperbolic sine. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(asinh, "Asinh", 9, asinh(v));
