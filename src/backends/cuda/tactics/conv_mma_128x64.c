#include "backends/cuda/common/product_mma.h"

HN_CUDA_TACTIC(conv_mma_128x64, "Conv", hn_product_mma, HN_MMA_128x64, 1);
