/* Arguments of conv_chain_expand.cu. Strides in elements. */
#ifndef HN_CONV_CHAIN_EXPAND_ARGS_H
#define HN_CONV_CHAIN_EXPAND_ARGS_H

#include "epilogue_args.h"
#include "types.h"

typedef struct hn_conv_chain_expand_args {
  const void *x;
  void *y;
  const void *weights; /* of each slice of HN_CB channels one after the other, as conv_chain_expand.cu says */
  i64 x_image, y_image;
  i32 x_row, x_pixel, y_row, y_pixel;
  i32 vectors;  /* of 8 channels in a pixel of x */
  i32 channels; /* of a pixel of y, with those that fill its last 16 bytes */
  i32 in_h, in_w, out_h, out_w, pad_h, pad_w;
  i32 slices, boxes_x, boxes_y; /* of channels; of an image */
  hn_epilogue_args inner, epilogue;
} hn_conv_chain_expand_args;

#endif
