#include "backends/cuda/common/likelihood.h"

HN_CUDA_LIKELIHOOD(negative_log_likelihood_loss, "NegativeLogLikelihoodLoss", false);
