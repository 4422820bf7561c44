#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(conv_simt_64x64, "Conv", 64, 64, 0.45);
