/* What the integer convolutions and products share (tactics/integers.cu). */
#ifndef HN_CUDA_COMMON_INTEGERS_H
#define HN_CUDA_COMMON_INTEGERS_H

#include "backends/cuda/common/direct.h"

/* Where an operator has its operands; -1: nowhere. */
typedef struct hn_cuda_integers {
  int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
} hn_cuda_integers;

bool hn_cuda_integer_conv(const hone_step *s, const hn_cuda_integers *at, hn_cuda_direct *p,
                          hone_reason *why);
bool hn_cuda_integer_matmul(const hone_step *s, const hn_cuda_integers *at, hn_cuda_direct *p,
                            hone_reason *why);

#endif
