/* Interpolation kernels over channels-last images. */
#ifndef HN_KERNELS_RESIZE_H
#define HN_KERNELS_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

struct hn_resize_ops {
  /* dst[i] = a[i] (1 - w) + b[i] w over n contiguous floats. */
  void (*blend)(float *dst, const float *a, const float *b, size_t n, float w);
  /* Output pixel x, of `channels` floats, blends input pixels left[x] and right[x] of one row with weight
   * w[x]. */
  void (*blend_row)(float *dst, ptrdiff_t out_pitch, const float *src, ptrdiff_t in_pitch, size_t channels,
                    size_t out_width, const int32_t *left, const int32_t *right, const float *w);
  /* Output pixel x is a copy of input pixel at[x]. */
  void (*pick_row)(float *dst, ptrdiff_t out_pitch, const float *src, ptrdiff_t in_pitch, size_t channels,
                   size_t out_width, const int32_t *at);
  /* dst[i] = sum over t of w[t] * src[at[t] * pitch + i], i < n, for one tap or more. */
  void (*sum_rows)(float *dst, const float *src, ptrdiff_t pitch, size_t n, size_t taps, const int32_t *at,
                   const float *w);
  /* What is before the point of n numbers within i8 or u8, as codes. */
  void (*cut)(void *dst, const float *src, size_t n, bool is_signed);
};

/* The best table at or below a tier. */
static inline const struct hn_resize_ops *hn_resize_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("resize", "f32", isa);
  return k ? (const struct hn_resize_ops *)k->ops : NULL;
}

#endif
