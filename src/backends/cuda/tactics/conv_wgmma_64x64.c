/* Warpgroup products, tiles of 64x64. */
#include "backends/cuda/common/wgmma.h"

HN_CUDA_TACTIC(conv_wgmma_64x64, "Conv", hn_wgmma, HN_WGMMA_64x64);
