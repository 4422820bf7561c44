/* Tanh: hyperbolic tangent. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(tanh, "Tanh", 1, tanh(v));
