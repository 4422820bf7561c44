/* Warpgroup products, tiles of 128x128. */
#include "backends/cuda/common/wgmma.h"

HN_WGMMA_TACTIC(gemm_wgmma_128x128, "Gemm", HN_WGMMA_128x128);
