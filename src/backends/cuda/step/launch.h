/* What most launches compute on the host: numbers of blocks, divisors. */
#ifndef HN_CUDA_STEP_LAUNCH_H
#define HN_CUDA_STEP_LAUNCH_H

#include <stdint.h>

#include "backends/cuda/device/divisor.h"
#include "base/integers.h"

/* For hn_quotient. 0 < by < 2^31. */
static inline hn_divisor hn_cuda_divisor(uint32_t by) {
  hn_divisor d = {by, 0, 0};
  while ((uint64_t)1 << d.shift < by) d.shift++;
  d.factor = (uint32_t)(((((uint64_t)1 << d.shift) - by) << 32) / by + 1);
  return d;
}

/* Blocks that `count` things take, `each` in a block; at least one. */
static inline uint32_t hn_cuda_blocks(int64_t count, int64_t each) {
  const int64_t n = hn_div_up(count, each);
  return n < 1 ? 1 : n > 0x7fffffff ? 0x7fffffffu : (uint32_t)n;
}

#endif
