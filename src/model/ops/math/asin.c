/* Asin: the angle in [-pi/2, pi/2] of a sine. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(asin, "Asin", 7, asin(v));
