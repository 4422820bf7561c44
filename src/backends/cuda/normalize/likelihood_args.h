/* Arguments of likelihood.cu. */
#ifndef HN_CUDA_LIKELIHOOD_ARGS_H
#define HN_CUDA_LIKELIHOOD_ARGS_H

#include "types.h"

typedef struct hn_likelihood_args {
  const void *x, *label, *weight; /* weight NULL: all are 1 */
  void *y, *log_prob;             /* log_prob NULL: not wanted */
  double *part;                   /* sums of losses and of weights, a pair a block; NULL: losses go to y */
  i64 ignored, inner;
  u32 lines, classes, parts;
  i32 ignores, mean;
} hn_likelihood_args;

#endif
