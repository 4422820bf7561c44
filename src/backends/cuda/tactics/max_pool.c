#include "backends/cuda/common/pooling.h"

HN_CUDA_POOLING(max_pool, "MaxPool", HN_CUDA_POOL_MAX);
