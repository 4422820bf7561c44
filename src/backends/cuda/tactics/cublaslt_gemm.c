/* Gemm with bias, residual, ReLU or GELU (tanh) by cuBLASLt: the algorithm that its heuristics put first. */
#include "backends/cuda/common/lt_step.h"

HN_CUDA_TACTIC(cublaslt_gemm, "Gemm", hn_lt, hn_lt_gemm_of, 0);
