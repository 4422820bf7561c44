/* Warpgroup products, tiles of 128x64. */
#include "backends/cuda/common/wgmma.h"

HN_WGMMA_TACTIC(matmul_wgmma_128x64, "MatMul", HN_WGMMA_128x64);
