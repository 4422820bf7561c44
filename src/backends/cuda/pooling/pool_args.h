/* Arguments of pool.cu. Distances in elements. */
#ifndef HN_CUDA_POOL_ARGS_H
#define HN_CUDA_POOL_ARGS_H

#include "divisor.h"

typedef struct hn_pool_args {
  const void *x;
  void *y;
  i64 *index; /* MaxPool's second output */
  u32 work;
  i32 channels; /* real ones */
  hn_divisor c; /* channels, or vectors of them */
  hn_divisor out[3];
  i32 in[3], stride[3], dilation[3], begin[3], end[3];
  i64 x_n, x_c, x_step[3], y_n, y_c, y_step[3], i_n, i_c, i_step[3];
} hn_pool_args;

#endif
