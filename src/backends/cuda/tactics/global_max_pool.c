#include "backends/cuda/common/fold.h"

HN_CUDA_TACTIC_UNPACKED(global_max_pool, "GlobalMaxPool", hn_cuda_fold, .zero = "hn_from_bits(0xff800000u)",
                        .integer_zero = "HN_LEAST", .add = "HN_MEET(a, (HN_ACC)(v))",
                        .meet = "((b) > (a) || (b) != (b) ? (b) : (a))", .end = "(a)", .spatial = true);
