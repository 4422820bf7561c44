/* QuantizeLinear and DequantizeLinear between f32 and integers of 8 and 16 bits with constant parameters, one
 * for the tensor or one a channel, in any dense layout. */
#ifndef HN_CPU_QUANTIZED_QUANTIZE_STEP_H
#define HN_CPU_QUANTIZED_QUANTIZE_STEP_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

typedef struct hn_quantize_step_config {
  bool to_real; /* the output is f32 (DequantizeLinear) */
} hn_quantize_step_config;

HN_FAMILY_PACKED(hn_quantize_step);

#define hn_cpu_quantize_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 2, hn_quantize_step, __VA_ARGS__)

#endif
