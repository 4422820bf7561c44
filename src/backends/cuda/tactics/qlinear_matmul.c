/* QLinearMatMul: sums in i32, rounded to 8 bits. */
#include "backends/cuda/common/integers.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  static const hn_cuda_integers at = {0, 1, 2, 3, 4, 5, 6, 7, -1};
  return hn_cuda_integer_matmul(s, &at, p, why);
}

HN_CUDA_TACTIC_UNPACKED(qlinear_matmul, "QLinearMatMul", hn_cuda_direct, plan);
