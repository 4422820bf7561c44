#include "backends/cuda/common/product_mma.h"

HN_CUDA_TACTIC(conv_mma_16x64_k4, "Conv", hn_product_mma, HN_MMA_16x64, 4);
