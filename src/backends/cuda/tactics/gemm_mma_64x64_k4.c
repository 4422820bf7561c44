#include "backends/cuda/common/product_mma.h"

HN_CUDA_TACTIC(gemm_mma_64x64_k4, "Gemm", hn_product_mma, HN_MMA_64x64, 4);
