#include "backends/cuda/common/product_simt.h"

HN_CUDA_TACTIC(conv_simt_128x128, "Conv", hn_product_simt, 128, 128, 0.65);
