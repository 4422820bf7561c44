/* SkipLayerNormalization: LayerNormalization of input + skip + bias. */
#include "model/ops/microsoft/norms/skip_norm.h"

HN_SKIP_NORM_OP(skip_layer_normalization, "SkipLayerNormalization", 3, 5);
