/* Arguments of conv_weights.cu. */
#ifndef HN_CUDA_CONV_WEIGHTS_ARGS_H
#define HN_CUDA_CONV_WEIGHTS_ARGS_H

#include "types.h"

typedef struct hn_conv_weights_args {
  const void *from;
  float *to;           /* [taps][cin][pitch] */
  i32 taps, cin, cout; /* of a group */
  i32 channels, pitch; /* of the output */
  i32 transposed;      /* [cin of all groups][cout][taps] rather than [channels][cin][taps] */
  u32 count;
} hn_conv_weights_args;

#endif
