#include "backends/cuda/common/pooling.h"

HN_CUDA_POOLING(average_pool, "AveragePool", HN_CUDA_POOL_AVERAGE);
