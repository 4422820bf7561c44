/* Softsign: x / (1 + |x|). */
#include "model/ops/common/elementwise.h"

HN_UNARY_OP(softsign, "Softsign", 1, v / ((T)1 + fabs(v)));
