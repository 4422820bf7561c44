#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(matmul_simt_128x64, "MatMul", 128, 64, 0.55);
