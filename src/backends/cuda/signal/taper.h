/* Window functions that are sums of cosines (signal/taper.cu): a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N).
 */
#ifndef HN_CUDA_SIGNAL_TAPER_H
#define HN_CUDA_SIGNAL_TAPER_H

#include "backends/cuda/step/direct.h"

bool hn_cuda_taper(const hone_step *s, double a0, double a1, double a2, hn_cuda_direct *p, hone_reason *why);

#define hn_cuda_taper_tactic(NAME, ANCHOR, ...)                                                              \
  static bool NAME##_plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {                         \
    return hn_cuda_taper(s, __VA_ARGS__, p, why);                                                            \
  }                                                                                                          \
  hn_cuda_direct_tactic(NAME, ANCHOR, NAME##_plan)

#endif
