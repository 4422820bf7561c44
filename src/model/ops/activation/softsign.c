/* Softsign: x / (1 + |x|). */
#include "model/ops/common/elementwise.h"

HN_UNARY_FAST_OP(softsign, "Softsign", 1, HN_FUNCTION(HONE_PW_SOFTSIGN, 1), v / ((T)1 + fabs(v)));
