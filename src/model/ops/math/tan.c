/* Tan: tangent of radians. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(tan, "Tan", 7, tan(v));
