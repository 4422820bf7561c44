#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(reduce_max, "ReduceMax", hn_cuda_fold, .zero = "hn_from_bits(0xff800000u)",
                        .integer_zero = "HN_LEAST", .add = "HN_MEET(a, (HN_ACC)(v))",
                        .meet = "((b) > (a) || (b) != (b) ? (b) : (a))", .end = "(a)");
