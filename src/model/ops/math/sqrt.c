/* Sqrt: square root. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(sqrt, "Sqrt", 1, HN_FUNCTION(HONE_PW_SQRT, 1), sqrt(v));
