/* Arguments of arg.cu. */
#ifndef HN_CUDA_ARG_ARGS_H
#define HN_CUDA_ARG_ARGS_H

#include "walk_args.h"

typedef struct hn_arg_args {
  const void *x;
  i64 *y;
  hn_walk_args kept;
  i64 step; /* along the axis */
  u32 outputs, length;
} hn_arg_args;

#endif
