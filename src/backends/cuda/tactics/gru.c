/* GRU. */
#include "backends/cuda/common/recurrent.h"

HN_CUDA_RECURRENT(gru, "GRU", 3);
