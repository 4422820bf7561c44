#include "backends/cuda/common/product_simt.h"

HN_CUDA_TACTIC(matmul_simt_128x64, "MatMul", hn_product_simt, 128, 64, 0.55);
