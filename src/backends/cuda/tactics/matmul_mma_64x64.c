#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(matmul_mma_64x64, "MatMul", HN_MMA_64x64, 1);
