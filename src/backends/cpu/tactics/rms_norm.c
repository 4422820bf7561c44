/* RMSNormalization: x / sqrt(mean(x^2) + epsilon) * scale over trailing axes. */
#include "backends/cpu/common/layer_norm.h"

HN_LAYER_NORM_TACTIC(rms_norm, "RMSNormalization", .residual = HN_NO_TENSOR, .bias = HN_NO_TENSOR, .gamma = 1,
                     .beta = HN_NO_TENSOR, .mean = HN_NO_TENSOR, .inv_std = HN_NO_TENSOR, .sum = HN_NO_TENSOR,
                     .rms = true, .epsilon = 1e-5f);
