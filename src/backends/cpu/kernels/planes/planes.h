/* Family "planes": one row of output pixels of a convolution from few channels to few. Vectors run along the
 * pixels of a row, so they are full whatever the channels are; the input's rows are laid out for that first,
 * a plane for each channel, and results leave turned, channels-last. */
#ifndef HN_KERNELS_PLANES_H
#define HN_KERNELS_PLANES_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

enum { HN_PLANES_OUTPUTS = 8 }; /* output channels that are computed together: a block */

typedef struct hn_planes_row {
  const float *const *x; /* [rows] a channel of the input row under each live kernel row, laid out; whole
                            vectors from any tap of any pixel on may be read */
  const float *const *w; /* [rows] its weights: [taps][HN_PLANES_OUTPUTS] of the first block */
  ptrdiff_t w_block;     /* floats from a block's weights to the next one's */
  const int32_t *tap;    /* [taps] where a tap of output pixel 0 lies, that of pixel i is i floats on */
  uint32_t rows;         /* live kernel rows times input channels (0: only bias) */
  uint32_t taps, outputs;
  float *y;
  int64_t y_pixel, n; /* output distance and number of pixels */
  uint32_t flags;     /* HN_EPI_BIAS, HN_EPI_CLAMP, HN_EPI_LEAKY */
  float lo, hi, slope;
  const float *bias;
} hn_planes_row;

typedef struct hn_planes_ops {
  uint32_t vw;
  void (*row)(const hn_planes_row *r);
  /* to[i] = from[i * distance] for i < n; whole vectors are written, zeros behind n. Nothing from `limit`
   * floats behind from on is read; (n - 1) * distance < limit. */
  void (*spread)(float *to, const float *from, size_t distance, size_t n, size_t limit);
} hn_planes_ops;

static inline const hn_planes_ops *hn_planes_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("planes", "f32", isa);
  return k ? k->ops : NULL;
}

#endif
