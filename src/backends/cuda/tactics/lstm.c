/* LSTM. */
#include "backends/cuda/common/recurrent.h"

HN_CUDA_RECURRENT(lstm, "LSTM", 4);
