#include "backends/cuda/common/fold.h"

HN_CUDA_FOLD(reduce_prod, "ReduceProd", .zero = "1", .add = "((a) * (v))", .meet = "((a) * (b))",
             .end = "(a)");
