#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(matmul_simt_64x64, "MatMul", 64, 64, 0.45);
