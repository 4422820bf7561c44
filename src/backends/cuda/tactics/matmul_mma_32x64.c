#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(matmul_mma_32x64, "MatMul", HN_MMA_32x64, 1);
