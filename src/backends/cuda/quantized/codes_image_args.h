/* Arguments of codes_image.cu. */
#ifndef HN_CUDA_CODES_IMAGE_ARGS_H
#define HN_CUDA_CODES_IMAGE_ARGS_H

#include "codes_args.h"
#include "divisor.h"

typedef struct hn_codes_image_args {
  const void *x;
  void *y;
  const void *weights; /* [chunk of columns][8 taps][8 columns][lane] two words: fragments of mma.m16n8k32 */
  hn_codes_args codes;
  i64 x_image, x_row, x_pixel, y_image, y_row, y_pixel; /* bytes */
  i32 in_y, in_x, out_y, out_x, pad_y, pad_x;
  i32 channels, stored;    /* of y; with the padding that is this tensor's own */
  hn_divisor across, down; /* tiles of a row, of an image */
  u32 outside;             /* four codes of what lies outside of the image */
} hn_codes_image_args;

#endif
