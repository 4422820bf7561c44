#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(reduce_log_sum_exp, "ReduceLogSumExp", hn_cuda_fold, .zero = "hn_exp_sum_of(0, 0)",
                        .add = "hn_exp_sum_meet(a, hn_exp_sum_of((double)(v), 1))",
                        .meet = "hn_exp_sum_meet(a, b)", .end = "hn_exp_sum_end(a)", .pair = true);
