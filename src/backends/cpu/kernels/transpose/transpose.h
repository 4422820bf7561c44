/* Moves that change the order of elements: matrix transposes of 1, 2, 4 and 8 byte elements, and the
 * three-channel interleave that the edge of an image network needs. Bits are moved, never interpreted. */
#ifndef HN_KERNELS_TRANSPOSE_H
#define HN_KERNELS_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

/* Elements at any address: they may be short runs of smaller ones. */
typedef uint16_t hn_bits2 __attribute__((aligned(1), may_alias));
typedef uint32_t hn_bits4 __attribute__((aligned(1), may_alias));
typedef uint64_t hn_bits8 __attribute__((aligned(1), may_alias));

/* dst[c * ldd + r] = src[r * lds + c] for r < rows, c < cols; strides in elements; no overlap. */
typedef void (*hn_transpose_fn)(void *dst, ptrdiff_t ldd, const void *src, ptrdiff_t lds, size_t rows,
                                size_t cols);

struct hn_transpose_ops {
  hn_transpose_fn matrix[4]; /* element size 1 << i bytes */
  /* dst[3 i + k] = plane_k[i] and back, 4-byte elements, i < n. */
  void (*interleave3)(uint32_t *dst, const uint32_t *a, const uint32_t *b, const uint32_t *c, size_t n);
  void (*deinterleave3)(uint32_t *a, uint32_t *b, uint32_t *c, const uint32_t *src, size_t n);
};

/* The best table at or below a tier. */
static inline const struct hn_transpose_ops *hn_transpose_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("transpose", "bits", isa);
  return k ? (const struct hn_transpose_ops *)k->ops : NULL;
}

#endif
