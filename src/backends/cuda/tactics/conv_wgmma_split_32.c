/* Warpgroup products, tiles of 64 rows and 32 columns, K divided among the blocks of a cluster. */
#include "backends/cuda/common/wgmma.h"

HN_CUDA_TACTIC(conv_wgmma_split_32, "Conv", hn_wgmma, HN_WGMMA_SPLIT_32);
