#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(global_lp_pool, "GlobalLpPool", hn_cuda_fold, .zero = "0",
                        .add = "((a) + (HN_ACC)(HN_P == 2.0 ? (v) * (v) : HN_P == 1.0 ? fabs((double)(v)) : "
                               "pow(fabs((double)(v)), HN_P)))",
                        .meet = "((a) + (b))",
                        .end = "HN_P == 2.0 ? sqrt(a) : HN_P == 1.0 ? (a) : pow((double)(a), 1.0 / HN_P)",
                        .spatial = true, .power = true);
