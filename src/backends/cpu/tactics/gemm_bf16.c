/* Gemm with constant weights, operands rounded to bf16 (kernels/gemm_bf16). */
#include "backends/cpu/common/bf16_step.h"

HN_BF16_TACTIC(gemm_bf16, "Gemm", false, hn_bf16_describe_gemm);
