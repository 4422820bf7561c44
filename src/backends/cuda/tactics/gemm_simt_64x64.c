#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(gemm_simt_64x64, "Gemm", 64, 64, 0.45);
