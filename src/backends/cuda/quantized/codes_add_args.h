/* Arguments of codes_add.cu. */
#ifndef HN_CUDA_CODES_ADD_ARGS_H
#define HN_CUDA_CODES_ADD_ARGS_H

#include "codes_args.h"
#include "divisor.h"

typedef struct hn_codes_add_args {
  const void *a, *b;
  void *y;
  hn_codes_sum sum;
  hn_divisor row;       /* sixteens of a row: of a pixel with its padding, or of all there is */
  u32 sixteens, length; /* in all; codes of a row that are there */
} hn_codes_add_args;

#endif
