/* Family "pool_int8": maxima and sums of codes, channel by channel. */
#ifndef HN_KERNELS_POOL_INT8_H
#define HN_KERNELS_POOL_INT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

typedef struct hn_pool_int8_ops {
  /* dst[c] = the largest tap[t][c], t < taps; the lowest code where there is none.  is_signed: i8, else u8.
   */
  void (*max)(uint8_t *dst, const uint8_t *const *tap, size_t taps, size_t channels, bool is_signed);
  /* sums[c] += x[p * pitch + c], p < pixels. */
  void (*sum)(int32_t *sums, const uint8_t *x, ptrdiff_t pitch, size_t pixels, size_t channels,
              bool is_signed);
} hn_pool_int8_ops;

static inline const hn_pool_int8_ops *hn_pool_int8_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("pool_int8", "max", isa);
  return k ? (const hn_pool_int8_ops *)k->ops : NULL;
}

#endif
