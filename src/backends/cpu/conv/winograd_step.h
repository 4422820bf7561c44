/* Conv steps through Winograd's algorithm, shared by the tactics of the different tile sizes. */
#ifndef HN_CPU_CONV_WINOGRAD_STEP_H
#define HN_CPU_CONV_WINOGRAD_STEP_H

#include <hone/plugin.h>
#include "backends/tactic.h"

typedef struct hn_winograd_config {
  int64_t tile;   /* a side of a tile of output pixels */
  int64_t stride; /* of the convolution, in both directions */
  bool bf16;      /* products of operands rounded to bf16 */
} hn_winograd_config;

HN_FAMILY_COUNTED(hn_winograd);
HN_FAMILY_SHARED(hn_winograd);

#define hn_cpu_winograd_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC_COUNTED_SHARED(cpu, NAME, ANCHOR, 3, hn_winograd, __VA_ARGS__)

#endif
