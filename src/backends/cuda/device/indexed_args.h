/* Arguments of the kernels that move elements by index (device/indexed.cuh says what p holds). */
#ifndef HN_INDEXED_ARGS_H
#define HN_INDEXED_ARGS_H

#include "types.h"

typedef struct hn_indexed_args {
  void *out;
  const void *in[3];
  i64 count;     /* of threads, below 2^31 */
  void *refused; /* hn_cuda_refusal */
  u64 node;      /* what is written there */
  i64 p[48];
} hn_indexed_args;

#endif
