/* Sums over a few places of an image, which are other ones for each point: what sampling by coordinates is.
 */
#ifndef HN_KERNELS_TAPS_H
#define HN_KERNELS_TAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"
#include "model/ops/sampling/grid.h"

/* Tap t of point p is place at[t * pitch + p], with a weight; places below 0 count nothing. */
typedef struct hn_taps {
  const int32_t *at;
  const float *weight, *base; /* base[p]: what the sum begins with */
  size_t pitch, taps, points;
} hn_taps;

enum { HN_TAPS_FAR = -2, HN_TAPS_AXES = 4, HN_TAPS_SIZE = 1 << 22 };

struct hn_taps_ops {
  /* y[p] = base[p] + sum over t of weight * x[at], for all points; x: a plane of n_x elements. */
  void (*plane)(float *y, const float *x, size_t n_x, const hn_taps *taps);
  /* The same for pixels of `channels` neighbouring floats, x_pitch and y_pitch apart. */
  void (*pixels)(float *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch, size_t channels,
                 const hn_taps *taps);
  /* The largest of weight * x[at] and base[p] instead of the sum, for such pixels. NaN counts where there is
   * nothing else; places below 0 count as 0. */
  void (*largest)(float *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch, size_t channels,
                  const hn_taps *taps);
  /* Tables of n points of a grid g[n][axes], which names the last axis first, on images of size[axes]: all
   * choices of one tap an axis, the last axis' changing fastest, in pixels of a plane; -1: a zero of the
   * padding. Coordinates are rounded as hn_grid_place does. Points that are reflected from so far that f32
   * has no fractions there have HN_TAPS_FAR as their first place and nothing else; returns how many these
   * are. At most HN_TAPS_AXES axes of at most HN_TAPS_SIZE, planes of less than 2^31 pixels. */
  size_t (*places)(int32_t *at, float *weight, size_t pitch, const float *g, size_t n, const hn_grid *grid,
                   const int64_t *size, size_t axes);
};

/* The best table at or below a tier. */
static inline const struct hn_taps_ops *hn_taps_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("taps", "f32", isa);
  return k ? (const struct hn_taps_ops *)k->ops : NULL;
}

#endif
