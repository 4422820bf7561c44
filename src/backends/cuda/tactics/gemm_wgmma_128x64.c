/* Warpgroup products, tiles of 128x64. */
#include "backends/cuda/common/wgmma.h"

HN_CUDA_TACTIC(gemm_wgmma_128x64, "Gemm", hn_wgmma, HN_WGMMA_128x64);
