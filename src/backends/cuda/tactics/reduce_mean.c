#include "backends/cuda/common/fold.h"

HN_CUDA_FOLD(reduce_mean, "ReduceMean", .zero = "0", .add = "((a) + (v))", .meet = "((a) + (b))",
             .end = "(a) / (HN_ACC)(n)");
