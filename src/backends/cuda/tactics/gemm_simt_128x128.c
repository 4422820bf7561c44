#include "backends/cuda/common/product_simt.h"

HN_CUDA_TACTIC(gemm_simt_128x128, "Gemm", hn_product_simt, 128, 128, 0.65);
