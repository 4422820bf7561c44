/* Dimensions that a kernel walks through, with the distances of two tensors along them (device/walk.cuh,
 * normalize/walk.h). */
#ifndef HN_CUDA_WALK_ARGS_H
#define HN_CUDA_WALK_ARGS_H

#include "divisor.h"

enum { HN_WALK_RANK = 8 };

typedef struct hn_walk_args {
  i32 rank;                             /* 0: a single element */
  hn_divisor dim[HN_WALK_RANK];         /* the last one counts fastest */
  i64 x[HN_WALK_RANK], y[HN_WALK_RANK]; /* in elements */
} hn_walk_args;

#endif
