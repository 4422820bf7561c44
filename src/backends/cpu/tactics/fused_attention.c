/* FusedAttention (what lowering makes of MatMul, Softmax and MatMul with scales, masks and views between: see
 * lower/attention.c) in f32. */
#include "backends/cpu/common/attention_step.h"

HN_ATTENTION_TACTIC(fused_attention, 0);
