#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(conv_mma_16x64_k4, "Conv", HN_MMA_16x64, 4);
