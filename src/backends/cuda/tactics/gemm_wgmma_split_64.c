/* Warpgroup products, tiles of 64 rows and 64 columns, K divided among the blocks of a cluster. */
#include "backends/cuda/common/wgmma.h"

HN_CUDA_TACTIC(gemm_wgmma_split_64, "Gemm", hn_wgmma, HN_WGMMA_SPLIT_64);
