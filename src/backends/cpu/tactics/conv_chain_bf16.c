/* ConvChain (common/chain_step.h): the 1x1 convolutions with operands rounded to bf16. */
#include "backends/cpu/common/chain_step.h"

HN_CHAIN_TACTIC(conv_chain_bf16, 1);
