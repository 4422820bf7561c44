/* Warpgroup products, tiles of 256x128. */
#include "backends/cuda/common/wgmma.h"

HN_WGMMA_TACTIC(gemm_wgmma_256x128, "Gemm", HN_WGMMA_256x128);
