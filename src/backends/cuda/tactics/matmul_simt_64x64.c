#include "backends/cuda/common/product_simt.h"

HN_CUDA_TACTIC(matmul_simt_64x64, "MatMul", hn_product_simt, 64, 64, 0.45);
