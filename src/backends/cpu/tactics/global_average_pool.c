/* GlobalAveragePool: the mean of each channel's pixels, both layouts. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(global_average_pool, "GlobalAveragePool", HN_REDUCE_SUM, HN_FINISH_MEAN, true);
