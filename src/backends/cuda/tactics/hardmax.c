#include "backends/cuda/common/softmax.h"

HN_CUDA_SOFTMAX(hardmax, "Hardmax", HN_ROWS_HARDMAX);
