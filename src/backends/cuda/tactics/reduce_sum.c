#include "backends/cuda/common/fold.h"

HN_CUDA_FOLD(reduce_sum, "ReduceSum", .zero = "0", .add = "((a) + (v))", .meet = "((a) + (b))", .end = "(a)");
