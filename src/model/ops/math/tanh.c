/* Tanh: hyperbolic tangent. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(tanh, "Tanh", 1, HN_FUNCTION(HONE_PW_TANH, 1), tanh(v));
