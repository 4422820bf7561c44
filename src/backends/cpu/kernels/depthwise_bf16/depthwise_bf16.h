/* Family "depthwise_bf16": one row of output pixels of a depthwise convolution over one panel of 32 channels,
 * from and to bf16, with weights and sums in f32.
 *
 * Input pixels lie in pairs: a word of 32 bits holds channel j below and channel 16 + j above, so that a
 * shift makes a vector of channels 0 .. 15 of them and a mask one of channels 16 .. 31. Output pixels have
 * their channels in order; they are rows of an operand of "gemm_bf16". Both are 32 values from pixel to
 * pixel. */
#ifndef HN_KERNELS_DEPTHWISE_BF16_H
#define HN_KERNELS_DEPTHWISE_BF16_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_DEPTHWISE_PANEL = 32 };

typedef struct hn_depthwise_bf16_row {
  const uint16_t *const *x; /* [rows] the pixel under the first output's first tap, in each live kernel row */
  const float *w; /* first live kernel row: tap u at w + u * w_tap, next kernel row at w + taps * w_tap; 32
                     values each */
  int64_t w_tap;
  uint32_t rows; /* live kernel rows (0: only bias) */
  uint32_t taps; /* kernel width; all of them lie inside the row */
  int64_t stride, dilation;
  uint16_t *y;
  int64_t n;         /* output pixels */
  uint32_t channels; /* 1 .. 32 that bias has; the others' sums start with 0 */
  uint32_t flags;    /* HN_EPI_BIAS, _CLAMP, _LEAKY */
  float lo, hi, slope;
  const float *bias;
} hn_depthwise_bf16_row;

typedef struct hn_depthwise_bf16_ops {
  void (*row)(const hn_depthwise_bf16_row *r);
  /* Pixels of n (1 .. 32) bf16 channels, `pitch` values apart, to pairs; channels from n on are 0. */
  void (*pair)(const uint16_t *x, ptrdiff_t pitch, size_t pixels, size_t n, uint16_t *to);
} hn_depthwise_bf16_ops;

/* The kernel of the best tier at or below isa; NULL: none. */
const hn_depthwise_bf16_ops *hn_depthwise_bf16_find(hn_isa isa);

#endif
