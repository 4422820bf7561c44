/* What the integer convolutions and products share (product/integers.cu). */
#ifndef HN_CUDA_PRODUCT_INTEGERS_H
#define HN_CUDA_PRODUCT_INTEGERS_H

#include "backends/cuda/step/direct.h"

/* Where an operator has its operands; -1: nowhere. */
typedef struct hn_cuda_integers {
  int a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero, bias;
} hn_cuda_integers;

bool hn_cuda_integer_conv(const hone_step *s, const hn_cuda_integers *at, hn_cuda_direct *p,
                          hone_reason *why);
bool hn_cuda_integer_matmul(const hone_step *s, const hn_cuda_integers *at, hn_cuda_direct *p,
                            hone_reason *why);

/* Operands without scales, and with scales and a zero point of the result. */
#define HN_INTEGERS_BARE 0, -1, 2, 1, -1, 3, -1, -1, -1
#define HN_INTEGERS_SCALED 0, 1, 2, 3, 4, 5, 6, 7, -1
#define HN_INTEGERS_SCALED_BIAS 0, 1, 2, 3, 4, 5, 6, 7, 8

#define HN_CUDA_INTEGERS(NAME, ANCHOR, PLAN, ...)                                                            \
  static bool NAME##_plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {                         \
    static const hn_cuda_integers at = {__VA_ARGS__};                                                        \
    return PLAN(s, &at, p, why);                                                                             \
  }                                                                                                          \
  hn_cuda_direct_tactic(NAME, ANCHOR, NAME##_plan)
#define hn_cuda_integer_conv_tactic(NAME, ANCHOR, ...)                                                       \
  HN_CUDA_INTEGERS(NAME, ANCHOR, hn_cuda_integer_conv, __VA_ARGS__)
#define hn_cuda_integer_matmul_tactic(NAME, ANCHOR, ...)                                                     \
  HN_CUDA_INTEGERS(NAME, ANCHOR, hn_cuda_integer_matmul, __VA_ARGS__)

#endif
