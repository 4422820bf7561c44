/* What the tactics of "ConvChain" share: (1x1 +) depthwise (+ 1x1) convolution with their epilogues, in row
 * groups and channel panels that stay in L2 (chain_driver.h). parts: the arithmetic of the 1x1 convolutions,
 * 0 f32, 2 or 3 f32 split into two or three bf16 numbers (of three, one of both may stay f32), 1 bf16 or,
 * with f16, f16. */
#ifndef HN_CPU_CONV_CHAIN_STEP_H
#define HN_CPU_CONV_CHAIN_STEP_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

typedef struct hn_chain_step_config {
  int parts;
  bool f16;
} hn_chain_step_config;

HN_FAMILY_COUNTED(hn_chain_step);
HN_FAMILY_SHARED(hn_chain_step);

#define hn_cpu_chain_tactic(NAME, ANCHOR, ...)                                                               \
  HN_TACTIC_COUNTED_SHARED(cpu, NAME, ANCHOR, 6, hn_chain_step, __VA_ARGS__)

#endif
