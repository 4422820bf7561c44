/* A convolution and the 1x1 behind it, tiles of 256 pixels. */
#include "backends/cuda/common/wgmma_chain.h"

HN_CUDA_TACTIC(conv_chain_wgmma_256, "ConvChain", hn_wgmma_chain, 2);
