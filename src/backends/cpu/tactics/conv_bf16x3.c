/* Conv of one to three dimensions with constant weights, f32 operands split into two bf16 parts each
 * (kernels/gemm_bf16). */
#include "backends/cpu/common/bf16_step.h"

HN_BF16_TACTIC(conv_bf16x3, "Conv", true, hn_bf16_describe_conv);
