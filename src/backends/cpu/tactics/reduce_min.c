/* ReduceMin: minima over merged axes. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(reduce_min, "ReduceMin", HN_REDUCE_MIN, HN_FINISH_NONE, false);
