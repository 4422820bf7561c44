#include "backends/cuda/common/product_mma.h"

HN_PRODUCT_MMA_TACTIC(conv_mma_128x64, "Conv", HN_MMA_128x64, 1);
