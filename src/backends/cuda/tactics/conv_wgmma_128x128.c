/* Warpgroup products, tiles of 128x128. */
#include "backends/cuda/common/wgmma.h"

HN_WGMMA_TACTIC(conv_wgmma_128x128, "Conv", HN_WGMMA_128x128);
