/* Arguments of conv_direct.cu. Distances in elements. */
#ifndef HN_CUDA_CONV_DIRECT_ARGS_H
#define HN_CUDA_CONV_DIRECT_ARGS_H

#include "divisor.h"
#include "epilogue_args.h"

typedef struct hn_conv_direct_args {
  const void *x;
  void *y;
  const float *w;             /* [taps][cin][w_pitch]: one column an output channel, zeros behind them */
  i64 x_step[4], y_step[4];   /* images, slices, rows, pixels */
  hn_divisor out[3], vectors; /* sizes of the output; groups of four channels in a pixel */
  i32 in[3], stride[3], dilation[3], pad[3];
  i32 cin, cout; /* of a group */
  i32 channels;  /* of the output */
  i32 w_pitch;
  u32 work;
  hn_epilogue_args epilogue;
} hn_conv_direct_args;

#endif
