#include "backends/cuda/common/conv_direct.h"

HN_CUDA_CONV_DIRECT(conv_direct, "Conv", false);
