/* Warpgroup products, tiles of 64x64. */
#include "backends/cuda/common/wgmma.h"

HN_WGMMA_TACTIC(gemm_wgmma_64x64, "Gemm", HN_WGMMA_64x64);
