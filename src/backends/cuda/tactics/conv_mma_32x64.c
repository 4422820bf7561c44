#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(conv_mma_32x64, "Conv", HN_MMA_32x64, 1);
