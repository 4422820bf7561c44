#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(gemm_simt_128x128, "Gemm", 128, 128, 0.65);
