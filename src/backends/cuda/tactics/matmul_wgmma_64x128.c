/* Warpgroup products, tiles of 64x128. */
#include "backends/cuda/common/wgmma.h"

HN_WGMMA_TACTIC(matmul_wgmma_64x128, "MatMul", HN_WGMMA_64x128);
