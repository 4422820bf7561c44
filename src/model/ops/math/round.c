/* Round: the nearest integer, halves to the even one. */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(round, "Round", 11, HN_FUNCTION(HONE_PW_ROUND, 1), rint(v));
