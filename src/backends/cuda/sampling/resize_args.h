/* Arguments of resize.cu. */
#ifndef HN_CUDA_RESIZE_ARGS_H
#define HN_CUDA_RESIZE_ARGS_H

#include "divisor.h"

enum { HN_RESIZE_RANK = 8 };

typedef struct hn_resize_args {
  const void *x;
  void *y;
  u32 work;
  i32 rank;
  hn_divisor dim[HN_RESIZE_RANK]; /* of the output, the last one counts fastest */
  i64 x_step[HN_RESIZE_RANK], y_step[HN_RESIZE_RANK];
  i32 taps[HN_RESIZE_RANK]; /* 0: the dimension is not resized */
  /* Sources of a resized dimension: [dim][taps] indices and weights; [dim] whether the output is outside */
  const i32 *index[HN_RESIZE_RANK];
  const float *weight[HN_RESIZE_RANK];
  const u8 *outside[HN_RESIZE_RANK];
  i32 all; /* product of the taps */
  float extrapolation;
} hn_resize_args;

#endif
