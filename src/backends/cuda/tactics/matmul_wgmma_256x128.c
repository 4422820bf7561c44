/* Warpgroup products, tiles of 256x128. */
#include "backends/cuda/common/wgmma.h"

HN_WGMMA_TACTIC(matmul_wgmma_256x128, "MatMul", HN_WGMMA_256x128);
