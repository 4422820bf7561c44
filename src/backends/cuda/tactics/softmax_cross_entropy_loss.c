#include "backends/cuda/common/likelihood.h"

HN_CUDA_LIKELIHOOD(softmax_cross_entropy_loss, "SoftmaxCrossEntropyLoss", true);
