#include "backends/cuda/common/product_simt.h"

HN_PRODUCT_SIMT_TACTIC(matmul_simt_128x128, "MatMul", 128, 128, 0.65);
