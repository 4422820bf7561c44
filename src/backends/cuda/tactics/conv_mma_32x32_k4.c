#include "backends/cuda/common/product_mma.h"

HN_CUDA_TACTIC(conv_mma_32x32_k4, "Conv", hn_product_mma, HN_MMA_32x32, 4);
