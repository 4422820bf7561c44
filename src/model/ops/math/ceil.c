/* Ceil: the smallest integer that is not below x. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(ceil, "Ceil", 1, ceil(v));
