#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(gemm_mma_128x128, "Gemm", HN_MMA_128x128, 1);
