/* ReduceSumSquare: sums of squares. */
#include "backends/cpu/common/reduction.h"
#include "base/error.h"

HN_REDUCTION_TACTIC(reduce_sum_square, "ReduceSumSquare", HN_REDUCE_SQUARE, HN_FINISH_NONE, false);
