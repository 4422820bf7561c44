/* AveragePool, channels-last. */
#include "backends/cpu/common/pooling.h"

HN_POOLING_TACTIC(average_pool, "AveragePool", false);
