#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(gemm_mma_16x64_k4, "Gemm", HN_MMA_16x64, 4);
