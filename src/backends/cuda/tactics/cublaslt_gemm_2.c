/* cublaslt_gemm with the heuristics' algorithm 2 (the first being 0), for measurements. */
#include "backends/cuda/common/lt_step.h"

HN_CUDA_TACTIC(cublaslt_gemm_2, "Gemm", hn_lt, hn_lt_gemm_of, 2);
