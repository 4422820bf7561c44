/* f32 from and to 16-bit floats. */
#ifndef HN_KERNELS_HALVES_H
#define HN_KERNELS_HALVES_H

#include <stddef.h>

#include "backends/cpu/kernels/kernel.h"

/* Rounded to the nearest, ties to even; NaN stays NaN. dst and src at any address, apart from each other. */
struct hn_halves_ops {
  void (*from_f16)(float *dst, const void *src, size_t n);
  void (*from_bf16)(float *dst, const void *src, size_t n);
  void (*to_f16)(void *dst, const float *src, size_t n);
  void (*to_bf16)(void *dst, const float *src, size_t n);
};

/* The best table at or below a tier. */
static inline const struct hn_halves_ops *hn_halves_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("halves", "f32_16", isa);
  return k ? (const struct hn_halves_ops *)k->ops : NULL;
}

#endif
