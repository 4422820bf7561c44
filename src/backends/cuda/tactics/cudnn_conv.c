/* Conv, residual, bias and ReLU as one of cuDNN's whole kernels: the engine that its heuristics put first. */
#include "backends/cuda/common/cudnn_conv.h"

HN_CUDNN_CONV_TACTIC(cudnn_conv, HN_CUDNN_NATIVE, 0);
