/* GlobalMaxPool: the maximum of each channel's pixels, both layouts. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(global_max_pool, "GlobalMaxPool", HN_REDUCE_MAX, HN_FINISH_NONE, true);
