/* Log: natural logarithm. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(log, "Log", 1, HN_FUNCTION(HONE_PW_LOG, 1), log(v));
