#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(reduce_min, "ReduceMin", hn_cuda_fold, .zero = "hn_from_bits(0x7f800000u)",
                        .integer_zero = "HN_MOST", .add = "HN_MEET(a, (HN_ACC)(v))",
                        .meet = "((b) < (a) || (b) != (b) ? (b) : (a))", .end = "(a)");
