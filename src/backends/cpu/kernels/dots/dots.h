/* Family "dots": one row of output pixels of a channels-last convolution to few channels. Each sum is a dot
 * product along the channels of the pixels under the kernel, so vectors are full however few outputs there
 * are.
 */
#ifndef HN_KERNELS_DOTS_H
#define HN_KERNELS_DOTS_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

typedef struct hn_dots_row {
  const float *const *x; /* [rows] the input row under each live kernel row: pixel 0, first channel */
  const float *const *w; /* [rows] its weights: tap u of output o at w[v] + o * w_output + u * channels */
  int64_t w_output;
  int64_t x_pixel;               /* floats from pixel to pixel */
  int64_t width;                 /* input pixels of a row */
  uint32_t rows;                 /* live kernel rows: those inside the image (0: only bias) */
  uint32_t taps;                 /* kernel width */
  int64_t stride, dilation, pad; /* horizontal; pad at the left */
  size_t channels;               /* of the input */
  uint32_t outputs;
  float *y;
  int64_t y_pixel, n; /* output distance and number of pixels */
  uint32_t flags;     /* HN_EPI_BIAS, HN_EPI_CLAMP, HN_EPI_LEAKY */
  float lo, hi, slope;
  const float *bias;
} hn_dots_row;

typedef struct hn_dots_ops {
  uint32_t vw;
  uint32_t together; /* outputs that share a load of the input, at most */
  void (*row)(const hn_dots_row *r);
} hn_dots_ops;

static inline const hn_dots_ops *hn_dots_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("dots", "f32", isa);
  return k ? k->ops : NULL;
}

#endif
