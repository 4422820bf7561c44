/* QuantizeLinear from f32 to 8 bits. */
#include "backends/cpu/common/quantize_step.h"

HN_QUANTIZE_TACTIC(quantize_linear, "QuantizeLinear", false);
