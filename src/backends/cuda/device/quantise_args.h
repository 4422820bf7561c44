/* How a number becomes a code of 8 bits (device/quantise.cuh). */
#ifndef HN_CUDA_QUANTISE_ARGS_H
#define HN_CUDA_QUANTISE_ARGS_H

#include "types.h"

typedef struct hn_quantise_args {
  float scale, inverse;  /* 1 / scale, rounded */
  float limit;           /* beyond which every number has the lowest or the highest code */
  float lowest, highest; /* codes less the zero point */
  i32 zero;
} hn_quantise_args;

#endif
