/* Family "grouped": one row of output pixels of a channels-last convolution with groups, a vector of output
 * channels: of one group, or of a few that fit in it side by side. Each value of the input is broadcast to
 * the lanes of its group: where `side` groups share a vector, value i of each lies one behind the other, and
 * all of them are broadcast together. Lane o * side + g is then output channel o of group g. An input row is
 * planes of one vector a pixel: of a group with more channels than lanes, the first so many lie in the first
 * plane. */
#ifndef HN_KERNELS_GROUPED_H
#define HN_KERNELS_GROUPED_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"
#include "backends/cpu/kernels/post/epilogue.h"

enum { HN_GROUPED_LANES = 16, HN_GROUPED_SIDES = 8 };

typedef struct hn_grouped_row {
  const float *const
      *x;        /* [rows] under each live kernel row: what tap 0 of output pixel 0 meets, first plane */
  int64_t plane; /* values from plane to plane */
  uint32_t rows, taps; /* rows: those inside of the image; taps: kernel width, all of them can be read */
  uint32_t side;       /* 1, 2, 4 or 8 */
  int64_t cin;         /* input channels of a group */
  int64_t stride, dilation;
  const float *w; /* [rows][taps][cin][vector] */
  float *y;
  int64_t y_pixel, n;
  size_t channels;      /* lanes that are output channels */
  const int32_t *order; /* [vector] the lane that output channel l is in; read where side > 1 */
  uint32_t flags;       /* HN_EPI_* */
  float lo, hi, slope;
  const float *bias, *residual;
  int64_t r_pixel;
} hn_grouped_row;

typedef struct hn_grouped_ops {
  uint32_t vw;
  void (*row)(const hn_grouped_row *r);
  /* n pixels of a plane: lane l has value order[l] (NULL: l) of the source, whose first `live` values, at
   * most a vector, can be read; what comes behind them is zero. */
  void (*spread)(float *dst, const float *src, ptrdiff_t src_pixel, size_t live, const int32_t *order,
                 size_t n);
} hn_grouped_ops;

/* The kernels of the best tier at or below isa. */
static inline const hn_grouped_ops *hn_grouped_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("grouped", "f32", isa);
  return k ? (const hn_grouped_ops *)k->ops : NULL;
}

#endif
