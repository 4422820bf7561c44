/* Family "depthwise_int8": one row of output pixels of a channels-last depthwise convolution of codes, for a
 * block of up to 32 channels, with the ways back to 8 bits f32 or i32 of gemm_int8.h.
 *
 * Four kernel rows are one *group*: the bytes that four input rows hold below each other for a channel are
 * the four factors of one 32-bit sum.  Weights: [group][tap][128 bytes]; byte 4 j + v belongs to kernel row 4
 * * group + v and channel hn_dw8_channel(j); 0 beyond the kernel and the channels.  bias and scale lie in the
 * same order of channels, in which interleaving and packing by lanes cancel out. */
#ifndef HN_KERNELS_DEPTHWISE_INT8_H
#define HN_KERNELS_DEPTHWISE_INT8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

enum { HN_DW8_BLOCK = 32, HN_DW8_ROWS = 4, HN_DW8_TAP = HN_DW8_BLOCK * HN_DW8_ROWS };

/* Channel of the j-th sum: 8 sums are a vector of two lanes. */
static inline int64_t hn_dw8_channel(int64_t j) { return j / 8 * 4 + j / 4 % 2 * 16 + j % 4; }

typedef struct hn_dw8_row {
  const uint8_t *const
      *x; /* [4 * groups] input rows, pixel 0, the block's first channel; each of `width` pixels */
  int64_t x_pixel, width;
  const int8_t *w;
  uint32_t groups, taps;
  int64_t stride, dilation, pad; /* horizontal; pad at the left */
  uint8_t padding;               /* of pixels outside, as u8 */
  bool flip;                     /* the input is i8: its top bit is turned */
  uint8_t *y;
  int64_t y_pixel, n;  /* output distance in bytes and number of pixels */
  const int32_t *bias; /* [32], zero point of the input taken off */
  const float *scale;  /* [32]; not read where `whole` */
  uint32_t channels;   /* 1 .. 32 */
  int32_t zero;
  bool is_signed; /* results are i8, else u8 */
  bool wide;      /* results are f32 */
  bool whole;     /* and wide: i32, the sums themselves */
} hn_dw8_row;

typedef struct hn_dw8_ops {
  double rate; /* multiply-adds per one of the f32 kernel of the same tier */
  void (*row)(const hn_dw8_row *r);
} hn_dw8_ops;

/* The kernel of the best tier at or below isa; cheap enough for every run. */
const hn_dw8_ops *hn_dw8_find(hn_isa isa);

#endif
