/* Arguments of generated elementwise kernels (elementwise/elementwise.h). */
#ifndef HN_ELEMENTWISE_ARGS_H
#define HN_ELEMENTWISE_ARGS_H

#include "divisor.h"

enum { HN_ELEMENTWISE_OPERANDS = 20, HN_ELEMENTWISE_DIMS = 8 };

typedef struct hn_elementwise_args {
  void *at[HN_ELEMENTWISE_OPERANDS]; /* outputs, then inputs */
  /* By group of operands that step alike: elements from one index to the next, outermost dimension first. */
  i64 stride[HN_ELEMENTWISE_OPERANDS][HN_ELEMENTWISE_DIMS];
  hn_divisor dim[HN_ELEMENTWISE_DIMS];
  hn_divisor per_row; /* vectors of the innermost dimension */
  u32 vectors;        /* of all rows, below 2^31 */
  i64 row;            /* elements of the innermost dimension that exist; what follows is padding */
  void *refused;      /* hn_cuda_refusal */
  u64 node;           /* what is written there */
} hn_elementwise_args;

#endif
