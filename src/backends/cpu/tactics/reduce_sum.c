/* ReduceSum: sums over merged axes. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(reduce_sum, "ReduceSum", HN_REDUCE_SUM, HN_FINISH_NONE, false);
