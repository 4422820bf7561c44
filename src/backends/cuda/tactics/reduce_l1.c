#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(reduce_l1, "ReduceL1", hn_cuda_fold, .zero = "0", .add = "((a) + fabs((double)(v)))",
                        .integer_zero = "0",
                        .integer_add = "((a) + (HN_ACC)((v) < 0 ? (u64)0 - (u64)(v) : (u64)(v)))",
                        .meet = "((a) + (b))", .end = "(a)");
