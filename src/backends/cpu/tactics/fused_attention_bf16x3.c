/* FusedAttention with f32 operands split into two bf16 parts each (kernels/gemm_bf16). */
#include "backends/cpu/common/attention_step.h"

HN_ATTENTION_TACTIC(fused_attention_bf16x3, 2);
