/* Conv with any epilogue as a kernel that cuDNN compiles: the engine that its heuristics put first. */
#include "backends/cuda/common/cudnn_conv.h"

HN_CUDNN_CONV_TACTIC(cudnn_fused, HN_CUDNN_FUSED, 0);
