/* 1x1 convolution, 256 pixels of few channels in registers. */
#include "backends/cuda/common/wgmma_chain.h"

HN_CUDA_TACTIC(conv_wgmma_rows_256, "Conv", hn_wgmma_chain, 2);
