/* Elu: alpha (exp(x) - 1) below zero, x above. */
#include "model/ops/common/elementwise.h"

HN_UNARY_ALPHA_OP(elu, "Elu", 1, HONE_PW_ELU, 1, v < 0 ? p0 * expm1(v) : v);
