/* Conv of one to three dimensions with constant weights, operands rounded to bf16 (kernels/gemm_bf16). */
#include "backends/cpu/common/bf16_step.h"

HN_BF16_TACTIC(conv_bf16, "Conv", false, hn_bf16_describe_conv);
