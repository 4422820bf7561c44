/* Atanh: inverse hyperbolic tangent. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(atanh, "Atanh", 9, atanh(v));
