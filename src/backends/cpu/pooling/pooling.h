/* MaxPool and AveragePool over channels-last images of one to three dimensions. */
#ifndef HN_CPU_POOLING_POOLING_H
#define HN_CPU_POOLING_POOLING_H

#include "backends/cpu/kernels/pool/pool.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

typedef struct hn_pooling {
  hn_isa isa;
  hn_stored stored;
  bool max, count_padding;
  hn_pixels x, y;
  int64_t kernel[3], stride[3], dilation[3], begin[3], end[3];
} hn_pooling;

bool hn_pooling_of(const hone_step *step, const hone_machine *machine, bool max, hn_pooling *p,
                   hone_reason *why);
typedef struct hn_pooling_config {
  bool max;
} hn_pooling_config;

HN_FAMILY_PACKED(hn_pooling);

#define hn_cpu_pooling_tactic(NAME, ANCHOR, ...)                                                             \
  HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 1, hn_pooling, __VA_ARGS__)

#endif
