/* Arguments of the product kernels (product_mma.cu, product_simt.cu): out = epilogue(alpha A B + beta C), or,
 * of codes, A B as codes.
 *
 * Rows of A are output pixels or rows of a matrix; K runs over taps and, within a tap, over channels.
 * Distances are in elements; a chunk is 16 bytes. */
#ifndef HN_CUDA_PRODUCT_ARGS_H
#define HN_CUDA_PRODUCT_ARGS_H

#include "codes_args.h"
#include "epilogue_args.h"
#include "types.h"

enum { HN_PRODUCT_BATCH = 6 };

typedef struct hn_product_args {
  const void *a, *b, *c;
  void *out;
  void *work; /* where splits meet through memory: a counter a tile, then [tile][split][rows][columns] f32
                 sums */
  hn_epilogue_args epilogue;
  u32 m, n, k;                 /* of one product; k counts the channels that fill a tap's last chunk, too */
  u32 k_chunks;                /* k in chunks, rounded up */
  u32 tiles_m, tiles_n, tiles; /* tiles: those of all products */
  u32 splits, split_tiles;     /* K tiles of a split */
  float alpha, beta;
  /* where a row of A lies: pixel (image, z, y, x) of the output's grid */
  u32 grid_z, grid_y, grid_x;
  i32 in_z, in_y, in_x;
  i32 stride_z, stride_y, stride_x, pad_z, pad_y, pad_x, dilation_z, dilation_y, dilation_x;
  i32 kernel_z, kernel_y, kernel_x;
  u32 tap;    /* elements of K that a tap has */
  u32 step_c; /* eight chunks of K in whole taps (step_y rows of the kernel, step_x taps) and chunks */
  i32 step_y, step_x;
  i64 image, pixel; /* distances in A; a matrix has one pixel a row */
  i64 a_col;        /* from one element of K to the next */
  /* B(k, n) of tap t: at t b_tap + (k within the tap) b_row + n b_col */
  i64 b_row, b_col, b_tap;
  i64 c_row, c_col;
  /* products: groups, or batch dimensions, the last one fastest */
  u32 n_batch, batch[HN_PRODUCT_BATCH];
  i64 a_batch[HN_PRODUCT_BATCH], b_batch[HN_PRODUCT_BATCH];
  u32 row_batch, column_batch; /* product i starts at output row i row_batch, column i column_batch */
  i64 out_pitch;
  u32 stored;   /* columns of the whole output that are written: zeros fill the last chunk of a pixel */
  u32 channels; /* of a tap that are real: the rest of `tap` is zeros */
  hn_codes_args codes;
} hn_product_args;

#endif
