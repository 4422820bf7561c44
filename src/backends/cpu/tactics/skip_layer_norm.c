/* SkipLayerNormalization: LayerNormalization of input + skip + bias. Inputs input, skip, gamma, beta, bias;
 * outputs the result, mean, inverse deviation and the sum. */
#include "backends/cpu/common/layer_norm.h"

HN_LAYER_NORM_TACTIC(skip_layer_norm, "SkipLayerNormalization", .residual = 1, .bias = 4, .gamma = 2,
                     .beta = 3, .mean = 1, .inv_std = 2, .sum = 3, .epsilon = 1e-12f);
