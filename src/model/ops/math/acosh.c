/* Acosh: inverse hyperbolic cosine. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(acosh, "Acosh", 9, acosh(v));
