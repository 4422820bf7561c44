/* Window functions that are sums of cosines (tactics/taper.cu): a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N).
 */
#ifndef HN_CUDA_COMMON_TAPER_H
#define HN_CUDA_COMMON_TAPER_H

#include "backends/cuda/common/direct.h"

bool hn_cuda_taper(const hone_step *s, double a0, double a1, double a2, hn_cuda_direct *p, hone_reason *why);

#define HN_CUDA_TAPER(nm, op, a0, a1, a2)                                                                    \
  static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {                                \
    return hn_cuda_taper(s, a0, a1, a2, p, why);                                                             \
  }                                                                                                          \
  HN_CUDA_TACTIC_UNPACKED(nm, op, hn_cuda_direct, plan)

#endif
