#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(conv_mma_32x32, "Conv", HN_MMA_32x32, 1);
