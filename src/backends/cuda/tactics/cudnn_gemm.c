/* Gemm with any epilogue as a kernel that cuDNN compiles: the engine that its heuristics put first. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_gemm, "Gemm", hn_cudnn, &hn_cudnn_product_fused, 0);
