/* Family "depthwise": one row of output pixels of a channels-last depthwise convolution (one filter a
 * channel). */
#ifndef HN_KERNELS_DEPTHWISE_H
#define HN_KERNELS_DEPTHWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/kernel.h"

typedef struct hn_depthwise_row {
  _Alignas(64) const float *const *x; /* aligned as hn_gemm_tile. [rows]: the input row under each live kernel
                                         row: pixel 0, first channel */
  int64_t x_pixel;                    /* floats from pixel to pixel */
  int64_t width;                      /* input pixels of a row */
  const float *w; /* first live kernel row: tap u at w + u * w_tap, next kernel row at w + taps * w_tap */
  int64_t w_tap;  /* channels rounded up to 16 */
  const float *const *w_rows;    /* [rows] where live kernel rows do not follow each other; else NULL */
  uint32_t rows;                 /* live kernel rows: those inside the image (0: only bias) */
  uint32_t taps;                 /* kernel width */
  int64_t stride, dilation, pad; /* horizontal; pad at the left */
  float *y;
  int64_t y_pixel, n; /* output distance and number of pixels */
  size_t channels;
  uint32_t flags; /* HN_EPI_* */
  float lo, hi, slope;
  const float *bias, *residual;
  int64_t r_pixel;
  /* Channels that leave lanes empty, stride 1: where pixels follow each other without a gap in x, y and
   * residual, a row is one run of values, and the weights are repeated along it. `period` pixels fill whole
   * vectors; 0: not so. */
  int64_t period;
  const float *run_w;    /* as w, with period * channels floats a tap */
  const float *run_bias; /* of so many */
} hn_depthwise_row;

typedef struct hn_depthwise_ops {
  uint32_t vw;
  void (*row)(const hn_depthwise_row *r);
} hn_depthwise_ops;

/* The depthwise kernel of the best tier at or below isa. */
const hn_depthwise_ops *hn_depthwise_find(hn_isa isa);

#endif
