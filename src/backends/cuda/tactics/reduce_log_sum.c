#include "backends/cuda/common/fold.h"

HN_CUDA_FOLD(reduce_log_sum, "ReduceLogSum", .zero = "0", .add = "((a) + (v))", .meet = "((a) + (b))",
             .end = "log(a)", .real = true);
