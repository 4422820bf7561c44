#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(conv_mma_64x64_k4, "Conv", HN_MMA_64x64, 4);
