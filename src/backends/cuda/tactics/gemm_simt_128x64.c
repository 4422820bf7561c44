#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(gemm_simt_128x64, "Gemm", 128, 64, 0.55);
