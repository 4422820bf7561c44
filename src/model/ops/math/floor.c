/* Floor: the largest integer that is not above x. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(floor, "Floor", 1, HN_FUNCTION(HONE_PW_FLOOR, 1), floor(v));
