#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(matmul_mma_128x64, "MatMul", HN_MMA_128x64, 1);
