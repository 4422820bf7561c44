#include "backends/cuda/common/fold.h"

HN_CUDA_FOLD(reduce_sum_square, "ReduceSumSquare", .zero = "0", .add = "((a) + (HN_ACC)(v) * (HN_ACC)(v))",
             .meet = "((a) + (b))", .end = "(a)");
