/* QuantizeLinear with one scale, or one along an axis. */
#include "backends/cuda/common/affine.h"

HN_CUDA_AFFINE_TACTIC(quantize_linear, "QuantizeLinear");
