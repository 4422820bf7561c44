#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(gemm_mma_64x64, "Gemm", HN_MMA_64x64, 1);
