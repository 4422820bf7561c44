/* Arguments of fp8.cu. */
#ifndef HN_CUDA_FP8_ARGS_H
#define HN_CUDA_FP8_ARGS_H

#include "divisor.h"

enum { HN_FP8_PARTS = 256 }; /* blocks that look for the largest number, at most */

typedef struct hn_fp8_args {
  const void *x;
  void *parts;         /* f32: the largest number of each block */
  void *scale;         /* f32: what a code of y is worth */
  void *y;             /* rows of whole sixteens of codes */
  i64 row;             /* distance in x, in elements */
  hn_divisor sixteens; /* of a row of y */
  u32 length, all;     /* elements of a row; sixteens in all */
  u32 n_parts;
} hn_fp8_args;

#endif
