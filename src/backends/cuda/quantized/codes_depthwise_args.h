/* Arguments of codes_depthwise.cu. */
#ifndef HN_CUDA_CODES_DEPTHWISE_ARGS_H
#define HN_CUDA_CODES_DEPTHWISE_ARGS_H

#include "codes_args.h"
#include "divisor.h"

typedef struct hn_codes_depthwise_args {
  const void *x;
  void *y;
  const void *weights; /* [kernel row][group of four taps][channel] words of four i8, the first tap lowest */
  hn_codes_args codes;
  i64 x_image, x_row, x_pixel, y_image, y_row, y_pixel; /* bytes */
  i32 in_y, in_x, out_y, out_x, pad_y, pad_x, channels;
  hn_divisor fours, groups, rows; /* channels in fours, groups of output pixels of a row, of output rows */
  u32 work, outside;              /* outside: four codes of what lies outside of the image */
} hn_codes_depthwise_args;

#endif
