/* Warpgroup products, tiles of 64 rows and 32 columns, K divided among the blocks of a cluster. */
#include "backends/cuda/common/wgmma.h"

HN_WGMMA_TACTIC(conv_wgmma_split_32, "Conv", HN_WGMMA_SPLIT_32);
