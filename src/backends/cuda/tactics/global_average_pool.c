#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(global_average_pool, "GlobalAveragePool", hn_cuda_fold, .zero = "0",
                        .add = "((a) + (v))", .meet = "((a) + (b))", .end = "(a) / (HN_ACC)(n)",
                        .spatial = true);
