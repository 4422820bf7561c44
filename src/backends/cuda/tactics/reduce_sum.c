#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(reduce_sum, "ReduceSum", hn_cuda_fold, .zero = "0", .add = "((a) + (v))",
                        .meet = "((a) + (b))", .end = "(a)");
