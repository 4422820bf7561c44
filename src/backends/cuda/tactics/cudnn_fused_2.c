/* cudnn_fused with the heuristics' engine 2 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_conv.h"

HN_CUDNN_CONV_TACTIC(cudnn_fused_2, HN_CUDNN_FUSED, 2);
