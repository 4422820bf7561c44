#include "backends/cuda/common/product_mma.h"

HN_CUDA_TACTIC(matmul_mma_32x64, "MatMul", hn_product_mma, HN_MMA_32x64, 1);
