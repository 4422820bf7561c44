/* Arguments of device/cross.cu. */
#ifndef HN_CUDA_CROSS_ARGS_H
#define HN_CUDA_CROSS_ARGS_H

#include "types.h"

typedef struct hn_cross_args { /* 16-byte aligned both */
  const void *from;
  void *to;
  u64 bytes;
} hn_cross_args;

#endif
