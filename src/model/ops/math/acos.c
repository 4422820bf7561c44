/* Acos: the angle in [0, pi] of a cosine. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(acos, "Acos", 7, acos(v));
