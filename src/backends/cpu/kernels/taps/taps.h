/* Sums over a few places of an image, which are other ones for each point: what sampling by coordinates is.
 */
#ifndef HN_KERNELS_TAPS_H
#define HN_KERNELS_TAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

/* Tap t of point p is place at[t * pitch + p], with a weight; places below 0 count nothing. */
typedef struct hn_taps {
  const int32_t *at;
  const float *weight, *base; /* base[p]: what the sum begins with */
  size_t pitch, taps, points;
} hn_taps;

struct hn_taps_ops {
  /* y[p] = base[p] + sum over t of weight * x[at], for all points. */
  void (*plane)(float *y, const float *x, const hn_taps *taps);
  /* The same for pixels of `channels` neighbouring floats, x_pitch and y_pitch apart. */
  void (*pixels)(float *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch, size_t channels,
                 const hn_taps *taps);
  /* Four taps with linear weights for each of n points (x, y) in pixels of images of height x width: the
   * pixel up and left of it, right, below, and below right. Points that do not lie between four pixels get -1
   * as their first place and nothing else; returns how many these are. Coordinates are (g + 1) / 2 * (size -
   * 1) of g[n][2] where align is set, else ((g + 1) * size - 1) / 2, rounded as written. */
  size_t (*corners)(int32_t *at, float *weight, size_t pitch, const float *g, size_t n, int32_t height,
                    int32_t width, bool align);
};

/* The best table at or below a tier. */
static inline const struct hn_taps_ops *hn_taps_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("taps", "f32", isa);
  return k ? (const struct hn_taps_ops *)k->ops : NULL;
}

#endif
