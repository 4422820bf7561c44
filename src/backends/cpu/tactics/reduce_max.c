/* ReduceMax: maxima over merged axes. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(reduce_max, "ReduceMax", HN_REDUCE_MAX, HN_FINISH_NONE, false);
