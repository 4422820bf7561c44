/* SkipSimplifiedLayerNormalization: RMSNormalization of input + skip + bias. */
#include "model/ops/microsoft/norms/skip_norm.h"

HN_SKIP_NORM_OP(skip_simplified_layer_normalization, "SkipSimplifiedLayerNormalization", 0, 4);
