/* Cosh: hyperbolic cosine. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(cosh, "Cosh", 9, cosh(v));
