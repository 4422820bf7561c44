#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(gemm_mma_32x32, "Gemm", HN_MMA_32x32, 1);
