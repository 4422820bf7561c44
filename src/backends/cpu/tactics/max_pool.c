/* MaxPool without indices, channels-last. */
#include "backends/cpu/common/pooling.h"

HN_POOLING_TACTIC(max_pool, "MaxPool", true);
