/* What the tactics of FusedAttention share. They differ in `parts`: 0 f32 arithmetic; 2 f32 operands split
 * into two bf16 parts each; 1 operands rounded to bf16. */
#ifndef HN_CPU_ATTENTION_ATTENTION_STEP_H
#define HN_CPU_ATTENTION_ATTENTION_STEP_H

#include "backends/cpu/attention/attention_driver.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

typedef struct hn_attention_config {
  int32_t parts;
} hn_attention_config;

HN_FAMILY_COUNTED(hn_attention);

#define hn_cpu_attention_tactic(NAME, ANCHOR, ...)                                                           \
  HN_TACTIC_COUNTED(cpu, NAME, ANCHOR, 8, hn_attention, __VA_ARGS__)

#endif
