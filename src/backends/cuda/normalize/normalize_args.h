/* Arguments of normalize.cu. */
#ifndef HN_CUDA_NORMALIZE_ARGS_H
#define HN_CUDA_NORMALIZE_ARGS_H

#include "quantise_args.h"
#include "walk_args.h"

typedef struct hn_normalize_args {
  const void *x, *skip, *bias; /* what is normalised: x + skip + bias[r]; NULL: nothing is added */
  const void *scale, *shift;
  void *y, *sum;           /* sum: x + skip + bias is wanted, too */
  float *mean, *inv_std;   /* one a row */
  hn_walk_args kept, gone; /* rows; elements of a row (vectors of HN_W) */
  u32 rows, length;        /* length: in vectors */
  u32 elements;            /* of a row */
  float epsilon;
  float x_scale, x_zero;  /* HN_CODES_IN; the zero point less the lowest code */
  hn_quantise_args codes; /* HN_CODES_OUT */
  i32 each, inner;        /* HN_PLACE: channels of a group, elements of a channel in a row */
  float *partial;         /* HN_PARTS: mean and squares about it of every part of every row */
  u32 part;               /* HN_PARTS: vectors of a part; the last one may have fewer */
  hn_divisor parts;       /* HN_PARTS: of a row */
  hn_divisor planes;      /* rows count through this many channels or groups */
} hn_normalize_args;

#endif
