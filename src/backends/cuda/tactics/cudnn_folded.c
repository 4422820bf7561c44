/* Conv of few channels at stride 2 with pairs of pixels folded into channels: the engine that cuDNN's
 * heuristics put first. */
#include "backends/cuda/common/cudnn_step.h"

HN_CUDA_TACTIC(cudnn_folded, "Conv", hn_cudnn, &hn_cudnn_conv_folded, 0);
