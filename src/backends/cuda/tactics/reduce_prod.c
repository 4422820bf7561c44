#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(reduce_prod, "ReduceProd", hn_cuda_fold, .zero = "1", .add = "((a) * (v))",
                        .meet = "((a) * (b))", .end = "(a)");
