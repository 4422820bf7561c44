/* Arguments of conv_wgmma.cu. */
#ifndef HN_CONV_WGMMA_ARGS_H
#define HN_CONV_WGMMA_ARGS_H

#include "codes_args.h"
#include "epilogue_args.h"
#include "types.h"

typedef struct hn_map_words {
  u64 word[16];
} __attribute__((aligned(64))) hn_map_words;

typedef struct hn_conv_wgmma_args {
  hn_map_words a, staged, out; /* tensor maps */
  const void *x;               /* gathered A */
  const void *weights;         /* [k block][n / 8] tiles of 8 rows x 128 bytes, swizzled */
  void *y;
  hn_epilogue_args epilogue;
  i64 image;          /* elements from one image of x to the next */
  i32 pixels;         /* rows of the product: N OH OW */
  i32 columns;        /* of y, channel padding included */
  i32 y_pixel;        /* elements from one pixel of y to the next */
  i32 n8;             /* columns of the weights / 8 */
  i32 n;              /* columns that are no padding */
  i32 k_blocks;       /* of 128 bytes */
  i32 n_tiles, tiles; /* tiles along the columns, in all */
  i32 h, w, oh, ow;   /* input and output pixels */
  i32 kw, taps;       /* of the kernel */
  i32 cin, pixel;     /* channels of x (in whole 16s of bytes); elements from one pixel to the next */
  i32 stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  const void *border; /* HN_BORDER: u8, the class of each row of the output, then of each column */
  const void
      *lacking; /* i32 [row's class][column's class][border_pitch]: what is added to sums; class 0: nothing */
  i32 border_columns, border_pitch; /* classes of columns */
  hn_codes_args codes;              /* of products of codes, in place of the epilogue */
} hn_conv_wgmma_args;

#endif
