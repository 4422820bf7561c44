/* Log: natural logarithm. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(log, "Log", 1, log(v));
