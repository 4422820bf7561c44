/* Warpgroup products, tiles of 256x128. */
#include "backends/cuda/common/wgmma.h"

HN_CUDA_TACTIC(conv_wgmma_256x128, "Conv", hn_wgmma, HN_WGMMA_256x128);
