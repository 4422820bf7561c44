/* Warpgroup products, tiles of 64x128. */
#include "backends/cuda/common/wgmma.h"

HN_CUDA_TACTIC(matmul_wgmma_64x128, "MatMul", hn_wgmma, HN_WGMMA_64x128);
