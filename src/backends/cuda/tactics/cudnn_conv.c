/* Conv, residual, bias and ReLU as one of cuDNN's whole kernels: the engine that its heuristics put first. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_conv, "Conv", hn_cudnn, &hn_cudnn_conv_native, 0);
