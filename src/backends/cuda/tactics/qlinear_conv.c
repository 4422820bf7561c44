/* QLinearConv: sums in i32, rounded to 8 bits. */
#include "backends/cuda/common/integers.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  static const hn_cuda_integers at = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  return hn_cuda_integer_conv(s, &at, p, why);
}

HN_CUDA_TACTIC_UNPACKED(qlinear_conv, "QLinearConv", hn_cuda_direct, plan);
