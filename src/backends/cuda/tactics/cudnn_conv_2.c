/* cudnn_conv with the heuristics' engine 2 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_conv_2, "Conv", hn_cudnn, &hn_cudnn_conv_native, 2);
