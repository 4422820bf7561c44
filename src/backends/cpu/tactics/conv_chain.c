/* ConvChain (common/chain_step.h): f32. */
#include "backends/cpu/common/chain_step.h"

HN_CHAIN_TACTIC(conv_chain, 0);
