/* RNN: H = f(W x + R H + b). */
#include "backends/cuda/common/recurrent.h"

HN_CUDA_RECURRENT(rnn, "RNN", 1);
