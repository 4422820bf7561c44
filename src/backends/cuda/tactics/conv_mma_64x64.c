#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(conv_mma_64x64, "Conv", HN_MMA_64x64, 1);
