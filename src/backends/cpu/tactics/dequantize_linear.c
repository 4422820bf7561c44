/* DequantizeLinear from 8 bits to f32. */
#include "backends/cpu/common/quantize_step.h"

HN_QUANTIZE_TACTIC(dequantize_linear, "DequantizeLinear", true);
