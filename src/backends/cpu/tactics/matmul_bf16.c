/* MatMul with one constant matrix of weights, operands rounded to bf16 (kernels/gemm_bf16). */
#include "backends/cpu/common/bf16_step.h"

HN_BF16_TACTIC(matmul_bf16, "MatMul", false, hn_bf16_describe_matmul);
