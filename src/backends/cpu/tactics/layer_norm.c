/* LayerNormalization: inputs X, Scale, B; outputs Y, Mean, InvStdDev. */
#include "backends/cpu/common/layer_norm.h"

HN_LAYER_NORM_TACTIC(layer_norm, "LayerNormalization", .residual = HN_NO_TENSOR, .bias = HN_NO_TENSOR,
                     .gamma = 1, .beta = 2, .mean = 1, .inv_std = 2, .sum = HN_NO_TENSOR, .epsilon = 1e-5f);
