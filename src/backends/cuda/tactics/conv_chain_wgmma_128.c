/* A convolution and the 1x1 behind it, tiles of 128 pixels. */
#include "backends/cuda/common/wgmma_chain.h"

HN_WGMMA_CHAIN_TACTIC(conv_chain_wgmma_128, "ConvChain", 1);
