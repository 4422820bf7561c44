/* cudnn_fused with the heuristics' engine 3 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_fused_3, "Conv", hn_cudnn, &hn_cudnn_conv_fused, 3);
