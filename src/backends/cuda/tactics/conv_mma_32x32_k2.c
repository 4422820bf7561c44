#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(conv_mma_32x32_k2, "Conv", HN_MMA_32x32, 2);
