/* 1x1 convolution, 128 pixels of few channels in registers. */
#include "backends/cuda/common/wgmma_chain.h"

HN_CUDA_TACTIC(conv_wgmma_rows_128, "Conv", hn_wgmma_chain, 1);
