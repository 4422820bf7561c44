/* CumSum: running sums along an axis. */
#include "model/ops/reduce/cumulate.h"

HN_CUMULATE_OP(cum_sum, "CumSum", 11, false);
