#include "backends/cuda/common/conv_direct.h"

HN_CUDA_TACTIC(conv_direct, "Conv", hn_cuda_conv_direct, false);
