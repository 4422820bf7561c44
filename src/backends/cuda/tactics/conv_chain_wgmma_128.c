/* A convolution and the 1x1 behind it, tiles of 128 pixels. */
#include "backends/cuda/common/wgmma_chain.h"

HN_CUDA_TACTIC(conv_chain_wgmma_128, "ConvChain", hn_wgmma_chain, 1);
