/* Softmax and LogSoftmax over any axis, in any layout in which that axis is one evenly stepped dimension. */
#ifndef HN_CPU_NORMALIZE_SOFTMAX_STEP_H
#define HN_CPU_NORMALIZE_SOFTMAX_STEP_H

#include "backends/cpu/normalize/reduction.h"
#include "backends/tactic.h"

typedef struct hn_softmax_config {
  bool log;
} hn_softmax_config;

HN_FAMILY_PACKED(hn_softmax);

#define hn_cpu_softmax_tactic(NAME, ANCHOR, ...)                                                             \
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 3, hn_softmax, __VA_ARGS__)

#endif
