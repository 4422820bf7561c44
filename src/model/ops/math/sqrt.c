/* Sqrt: square root. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(sqrt, "Sqrt", 1, sqrt(v));
