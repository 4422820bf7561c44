/* Arguments of codes_sums.cu. */
#ifndef HN_CUDA_CODES_SUMS_ARGS_H
#define HN_CUDA_CODES_SUMS_ARGS_H

#include "divisor.h"
#include "product_args.h"

/* Rows of codes to rows of whole sixteens. */
typedef struct hn_codes_signed_args {
  const void *x;
  void *y;
  i64 row;             /* distance in x */
  hn_divisor sixteens; /* of a row of y */
  u32 length, all;     /* codes of a row; sixteens in all */
  u32 flip;            /* bits that change in every word */
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
