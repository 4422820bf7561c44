#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(reduce_log_sum, "ReduceLogSum", hn_cuda_fold, .zero = "0", .add = "((a) + (v))",
                        .meet = "((a) + (b))", .end = "log(a)", .real = true);
