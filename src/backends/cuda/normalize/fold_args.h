/* Arguments of normalize/fold.cu. */
#ifndef HN_CUDA_FOLD_ARGS_H
#define HN_CUDA_FOLD_ARGS_H

#include "walk_args.h"

typedef struct hn_fold_args {
  const void *x;
  void *y;
  void *part;        /* [splits][outputs] where a reduction is split */
  hn_walk_args kept; /* in vectors of HN_W where columns are folded, else in elements */
  hn_walk_args gone; /* in elements, or in vectors of HN_W where rows are folded */
  u32 outputs;       /* walk positions of `kept` */
  u32 length;        /* of `gone` */
  u32 splits;
  i32 group; /* threads of a block that share an output, a power of two */
  i32 channels,
      padded; /* positions c in each `padded` elements of the output with c >= channels get zeros; 0: none */
  double count; /* elements of a reduction, for means */
} hn_fold_args;

#endif
