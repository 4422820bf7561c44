/* Warpgroup products, tiles of 256x128. */
#include "backends/cuda/common/wgmma.h"

HN_CUDA_TACTIC(matmul_wgmma_256x128, "MatMul", hn_wgmma, HN_WGMMA_256x128);
