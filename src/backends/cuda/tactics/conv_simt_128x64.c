#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(conv_simt_128x64, "Conv", 128, 64, 0.55);
