/* Arguments of conv_image and conv_image_wgmma. Strides in elements: of two bytes, of codes one. */
#ifndef HN_CUDA_CONV_IMAGE_ARGS_H
#define HN_CUDA_CONV_IMAGE_ARGS_H

#include "codes_args.h"
#include "epilogue_args.h"
#include "types.h"

typedef struct hn_conv_image_args {
  const void *x;
  void *y;
  const void *w; /* fragments: [channel blocks][steps][HN_BN / 16][32 threads][8] */
  i64 x_image, x_row, y_image, y_row;
  i32 x_pixel, y_pixel;
  i32 in_h, in_w, out_h, out_w, pad_h, pad_w;
  i32 tiles_w, tiles_h; /* of an image */
  i32 tiles;            /* of all images */
  i32 vectors;          /* of 16 bytes that a pixel of y has */
  hn_epilogue_args epilogue;
  hn_codes_args codes; /* of codes, in place of the epilogue */
  i32 channels;        /* of codes: that are no padding */
  u32 outside;         /* of codes: four of what lies outside of the image */
} hn_conv_image_args;

#endif
