/* cublaslt_matmul with the heuristics' algorithm 1 (the first being 0), for measurements. */
#include "backends/cuda/common/lt_step.h"

HN_CUDA_TACTIC(cublaslt_matmul_1, "MatMul", hn_lt, hn_lt_matmul_of, 1);
