#include "backends/cuda/common/softmax.h"

HN_CUDA_SOFTMAX(log_softmax, "LogSoftmax", HN_ROWS_LOG_SOFTMAX);
