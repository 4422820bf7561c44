/* Round: the nearest integer, halves to the even one. */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(round, "Round", 11, rint(v));
