/* cudnn_conv with the heuristics' engine 1 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_conv.h"

HN_CUDNN_CONV_TACTIC(cudnn_conv_1, HN_CUDNN_NATIVE, 1);
