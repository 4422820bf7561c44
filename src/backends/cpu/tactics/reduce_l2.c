/* ReduceL2: Euclidean norms. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(reduce_l2, "ReduceL2", HN_REDUCE_SQUARE, HN_FINISH_SQRT, false);
