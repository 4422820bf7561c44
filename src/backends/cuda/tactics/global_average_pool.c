#include "backends/cuda/common/fold.h"

HN_CUDA_FOLD(global_average_pool, "GlobalAveragePool", .zero = "0", .add = "((a) + (v))",
             .meet = "((a) + (b))", .end = "(a) / (HN_ACC)(n)", .spatial = true);
