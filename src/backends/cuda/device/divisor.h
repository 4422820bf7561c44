/* Division by a number that the host knows, as a multiplication (device/divide.cuh, step/launch.h). */
#ifndef HN_CUDA_DIVISOR_H
#define HN_CUDA_DIVISOR_H

#include "types.h"

typedef struct hn_divisor {
  u32 by, factor, shift;
} hn_divisor;

#endif
