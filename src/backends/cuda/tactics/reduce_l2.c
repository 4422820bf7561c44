#include "backends/cuda/common/fold.h"

HN_CUDA_FOLD(reduce_l2, "ReduceL2", .zero = "0", .add = "((a) + (HN_ACC)(v) * (HN_ACC)(v))",
             .meet = "((a) + (b))", .end = "sqrt(a)", .real = true);
