/* Sin: sine of radians. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(sin, "Sin", 7, sin(v));
