/* cudnn_conv with the heuristics' engine 3 (the first being 0), for measurements. */
#include "backends/cuda/common/cudnn_conv.h"

HN_CUDNN_CONV_TACTIC(cudnn_conv_3, HN_CUDNN_NATIVE, 3);
