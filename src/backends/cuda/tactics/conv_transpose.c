#include "backends/cuda/common/conv_direct.h"

HN_CUDA_CONV_DIRECT(conv_transpose, "ConvTranspose", true);
