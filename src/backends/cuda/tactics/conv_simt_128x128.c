#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(conv_simt_128x128, "Conv", 128, 128, 0.65);
