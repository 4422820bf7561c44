/* Floor: the largest integer that is not above x. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(floor, "Floor", 1, floor(v));
