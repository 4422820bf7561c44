/* cudnn_matmul with the heuristics' engine 1 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_matmul_1, "MatMul", hn_cudnn, &hn_cudnn_product_fused, 1);
