/* MatMulInteger: sums in i32. */
#include "backends/cuda/common/integers.h"

static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {
  static const hn_cuda_integers at = {0, -1, 2, 1, -1, 3, -1, -1, -1};
  return hn_cuda_integer_matmul(s, &at, p, why);
}

HN_CUDA_TACTIC_UNPACKED(matmul_integer, "MatMulInteger", hn_cuda_direct, plan);
