/* FusedAttention with operands rounded to bf16 (kernels/gemm_bf16); sums and exponentials stay f32. */
#include "backends/cpu/common/attention_step.h"

HN_ATTENTION_TACTIC(fused_attention_bf16, 1);
