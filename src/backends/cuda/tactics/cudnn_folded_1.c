/* cudnn_folded with the heuristics' engine 1 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_folded_1, "Conv", hn_cudnn, &hn_cudnn_conv_folded, 1);
