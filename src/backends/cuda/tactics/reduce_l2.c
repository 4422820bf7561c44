#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(reduce_l2, "ReduceL2", hn_cuda_fold, .zero = "0",
                        .add = "((a) + (HN_ACC)(v) * (HN_ACC)(v))", .meet = "((a) + (b))", .end = "sqrt(a)",
                        .real = true);
