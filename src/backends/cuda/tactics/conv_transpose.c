#include "backends/cuda/common/conv_direct.h"

HN_CUDA_TACTIC(conv_transpose, "ConvTranspose", hn_cuda_conv_direct, true);
