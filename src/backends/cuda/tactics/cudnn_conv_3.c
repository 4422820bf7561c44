/* cudnn_conv with the heuristics' engine 3 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_conv_3, "Conv", hn_cudnn, &hn_cudnn_conv_native, 3);
