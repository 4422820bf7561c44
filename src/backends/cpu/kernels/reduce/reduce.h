/* Reductions of contiguous rows to one value, and of matrices to one row. */
#ifndef HN_KERNELS_REDUCE_H
#define HN_KERNELS_REDUCE_H

#include <stddef.h>

#include "backends/cpu/kernels/kernel.h"

typedef enum hn_reduce_kind {
  HN_REDUCE_SUM,
  HN_REDUCE_ABS,    /* sum |x| */
  HN_REDUCE_SQUARE, /* sum x^2 */
  HN_REDUCE_PROD,
  HN_REDUCE_MAX, /* NaN wins */
  HN_REDUCE_MIN, /* NaN wins */
  HN_REDUCE_COUNT
} hn_reduce_kind;

struct hn_reduce_ops {
  /* Of n contiguous elements; the neutral element (0, 1, -inf, inf) for n = 0. */
  float (*row[HN_REDUCE_COUNT])(const float *x, size_t n);
  /* The same of each of `rows` rows, ld apart, to neighbours in dst, which must not overlap src. */
  void (*rows[HN_REDUCE_COUNT])(float *dst, const float *src, size_t rows, size_t n, ptrdiff_t ld);
  /* dst[c] = reduction over r of src[r * ld + c]; dst must not overlap src. */
  void (*columns[HN_REDUCE_COUNT])(float *dst, const float *src, size_t rows, size_t cols, ptrdiff_t ld);
};

/* The best table at or below a tier. */
static inline const struct hn_reduce_ops *hn_reduce_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("reduce", "f32", isa);
  return k ? (const struct hn_reduce_ops *)k->ops : NULL;
}

#endif
