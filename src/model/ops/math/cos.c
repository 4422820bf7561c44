/* Cos: cosine of radians. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(cos, "Cos", 7, cos(v));
