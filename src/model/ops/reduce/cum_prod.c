/* CumProd: running products along an axis. */
#include "model/ops/reduce/cumulate.h"

HN_CUMULATE_OP(cum_prod, "CumProd", 26, true);
