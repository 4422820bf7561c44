/* MatMul with one constant matrix of weights, f32 operands split into two bf16 parts each
 * (kernels/gemm_bf16). */
#include "backends/cpu/common/bf16_step.h"

HN_BF16_TACTIC(matmul_bf16x3, "MatMul", true, hn_bf16_describe_matmul);
