#include "backends/cuda/common/resize.h"

HN_CUDA_RESIZE(upsample, "Upsample");
