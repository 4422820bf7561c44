/* ConvChain (common/chain_step.h): the 1x1 convolutions in products of f32 split into two bf16 parts. */
#include "backends/cpu/common/chain_step.h"

HN_CHAIN_TACTIC(conv_chain_bf16x3, 2);
