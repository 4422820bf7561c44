#include "backends/cuda/common/pooling.h"

HN_CUDA_POOLING(lp_pool, "LpPool", HN_CUDA_POOL_LP);
