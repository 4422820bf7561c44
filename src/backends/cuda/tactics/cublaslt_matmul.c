/* MatMul with bias, residual, ReLU or GELU (tanh) by cuBLASLt: the algorithm that its heuristics put first.
 */
#include "backends/cuda/common/lt_step.h"

HN_CUDA_TACTIC(cublaslt_matmul, "MatMul", hn_lt, hn_lt_matmul_of, 0);
