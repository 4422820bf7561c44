/* Softmax kernels: y = exp(x - max x) / sum exp(x - max x), or its logarithm. */
#ifndef HN_KERNELS_SOFTMAX_H
#define HN_KERNELS_SOFTMAX_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/cpu/kernels/kernel.h"

struct hn_softmax_ops {
  /* `rows` contiguous rows of n elements, pitches apart; dst may be src, with the same pitch. A row of -inf
   * gives NaN, as the formula does. */
  void (*rows)(float *dst, ptrdiff_t dst_pitch, const float *src, ptrdiff_t src_pitch, size_t rows, size_t n,
               bool log);
  /* `cols` neighbouring columns of length n; element (i, c) lies at [i * ld + c]. dst may be src. */
  void (*columns)(float *dst, const float *src, size_t n, size_t cols, ptrdiff_t ld, bool log);
};

/* The best table at or below a tier. */
static inline const struct hn_softmax_ops *hn_softmax_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("softmax", "f32", isa);
  return k ? (const struct hn_softmax_ops *)k->ops : NULL;
}

#endif
