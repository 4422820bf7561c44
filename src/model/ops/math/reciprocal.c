/* Reciprocal: 1 / x. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(reciprocal, "Reciprocal", 1, (T)1 / v);
