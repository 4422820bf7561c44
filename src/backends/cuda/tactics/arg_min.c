#include "backends/cuda/common/arg.h"

HN_CUDA_ARG(arg_min, "ArgMin", false);
