/* cudnn_gemm with the heuristics' engine 2 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_gemm_2, "Gemm", hn_cudnn, &hn_cudnn_product_fused, 2);
