/* Arguments of the kernels that move elements (movement/moves.h). */
#ifndef HN_MOVES_ARGS_H
#define HN_MOVES_ARGS_H

#include "divisor.h"

enum { HN_COPY_RANK = 8, HN_COPY_PIECES = 12, HN_TILE_RANK = 6 };

/* A copy between two strided boxes in units of 1 to 16 bytes; strides in bytes, the last dimension innermost.
 * from NULL: the unit is `fill` (8 bytes, repeated). */
typedef struct hn_copy_piece {
  void *to;
  const void *from;
  u64 fill;
  u32 units;       /* below 2^31 */
  u32 first_block; /* of the grid */
  i32 rank;
  i32 log_unit; /* 0 to 4 */
  i64 to_stride[HN_COPY_RANK], from_stride[HN_COPY_RANK];
  hn_divisor dim[HN_COPY_RANK];
} hn_copy_piece;

typedef struct hn_copy_args {
  u32 pieces;
  u32 none;
  hn_copy_piece piece[HN_COPY_PIECES];
} hn_copy_args;

/* A matrix, or many, whose rows are contiguous in the source and whose columns are contiguous in the
 * destination: element (r, c) comes from from + r * from_row + c and goes to to + c * to_col + r, in
 * elements. Rows from `rows` up to `padded` are zeros. */
typedef struct hn_tile_args {
  void *to;
  const void *from;
  i64 from_row, to_col;
  u32 rows, padded, cols;
  i32 rank; /* of the outer dimensions */
  hn_divisor tiles_c, tiles_r;
  i64 to_stride[HN_TILE_RANK], from_stride[HN_TILE_RANK];
  hn_divisor dim[HN_TILE_RANK];
} hn_tile_args;

/* Images of few channels, planes on one side and pixels on the other; `pitch` elements from pixel to pixel.
 */
typedef struct hn_planes_args {
  void *to;
  const void *from;
  i64 plane, image_planes, image_pixels; /* elements from plane to plane, and from image to image */
  u32 channels, pixels, images;
  hn_divisor groups; /* of pixels that a block has, in an image */
} hn_planes_args;

#endif
