/* Arguments of codes_sums.cu. */
#ifndef HN_CUDA_CODES_SUMS_ARGS_H
#define HN_CUDA_CODES_SUMS_ARGS_H

#include "divisor.h"
#include "product_args.h"

/* Rows of codes, or images of pixels, to rows and pixels of whole sixteens. */
typedef struct hn_codes_signed_args {
  const void *x;
  void *y;
  i64 row, image;               /* distances in x: of rows or pixels, of images */
  hn_divisor sixteens;          /* of a row of y */
  hn_divisor across, down;      /* of an image of y */
  i32 in_y, in_x, pad_y, pad_x; /* of an image of x, and what lies before it in y */
  u32 length, all;              /* codes of a row; sixteens in all */
  u32 flip;                     /* bits that change in every word */
  u32 outside;                  /* four codes of what lies outside of the image, as they are in y */
} hn_codes_signed_args;

/* Sums to the output of a product. */
typedef struct hn_codes_sums_args {
  hn_product_args product;
  const void *sums;
  i64 pitch;         /* of a row of sums */
  hn_divisor eights; /* of a row */
  u32 all;
} hn_codes_sums_args;

#endif
