/* Arguments of the depthwise kernels. Strides in bytes. */
#ifndef HN_CUDA_DEPTHWISE_ARGS_H
#define HN_CUDA_DEPTHWISE_ARGS_H

#include "epilogue_args.h"
#include "types.h"

typedef struct hn_depthwise_args {
  const void *x;
  void *y;
  const void
      *w; /* f32 [kernel rows * columns + 1][w_tap], zeros behind the channels; the last row is the bias */
  i64 x_image, x_row, y_image, y_row;
  i32 x_pixel, y_pixel, w_tap;
  i32 channels;
  i32 threads; /* of HN_V channels, the last one perhaps with zeros at its end */
  i32 vectors; /* of 16 bytes in a pixel */
  i32 in_h, in_w, out_h, out_w, pad_h, pad_w;
  i32 batch;
  i32 tiles;        /* of HN_TW output pixels in a row */
  i32 strips, rows; /* strips of `rows` output rows in an image */
  u32 work;         /* threads that have something to do */
  /* depthwise_mma: vectors of 16 bytes, pixels of a row and images that a block does at once */
  i32 block_vectors, block_tiles, block_images;
  hn_epilogue_args epilogue;
} hn_depthwise_args;

#endif
