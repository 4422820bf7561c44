/* ReduceLogSum: logarithms of sums. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(reduce_log_sum, "ReduceLogSum", HN_REDUCE_SUM, HN_FINISH_LOG, false);
