/* Family "nbits": codes of 2, 4 or 8 bits, which lie one after the other, low bits first, as numbers: (code -
 * zero) scale. */
#ifndef HN_KERNELS_NBITS_H
#define HN_KERNELS_NBITS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

typedef struct hn_nbits_ops {
  /* dst[i] = ((code i ^ flip) - zero) scale, n codes. */
  void (*decode)(float *dst, const uint8_t *codes, size_t n, uint32_t bits, uint32_t flip, float zero,
                 float scale);
} hn_nbits_ops;

/* The best table at or below a tier. */
static inline const hn_nbits_ops *hn_nbits_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("nbits", "f32", isa);
  return k ? (const hn_nbits_ops *)k->ops : NULL;
}

#endif
