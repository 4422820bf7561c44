/* Atan: the angle in (-pi/2, pi/2) of a tangent. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(atan, "Atan", 7, atan(v));
