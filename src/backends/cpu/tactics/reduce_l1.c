/* ReduceL1: sums of absolute values. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(reduce_l1, "ReduceL1", HN_REDUCE_ABS, HN_FINISH_NONE, false);
