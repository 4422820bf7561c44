/* Arguments of window_wgmma.cu. */
#ifndef HN_WINDOW_WGMMA_ARGS_H
#define HN_WINDOW_WGMMA_ARGS_H

#include "conv_wgmma_args.h"

typedef struct hn_window_wgmma_args {
  hn_map_words x, out;
  const void *weights; /* [K in blocks of 64][n / 8] tiles of 8 rows x 128 bytes, swizzled */
  hn_epilogue_args epilogue;
  i64 y_pixel;              /* elements from one pixel of y to the next */
  i32 n8, n_tiles;          /* columns of the weights / 8; tiles along them */
  i32 segments, strips;     /* of 64 pixels in a row; of HN_WM rows in an image */
  i32 tiles;                /* images x strips x segments */
  i32 oh, ow, pad_h, first; /* first: where the window of pixel 0 begins, in strides */
} hn_window_wgmma_args;

#endif
