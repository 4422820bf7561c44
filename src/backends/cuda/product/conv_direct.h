/* Convolutions by their definition (product/conv_direct.cu). */
#ifndef HN_CUDA_PRODUCT_CONV_DIRECT_H
#define HN_CUDA_PRODUCT_CONV_DIRECT_H

#include "backends/tactic.h"

typedef struct hn_cuda_conv_direct_config {
  bool transposed;
} hn_cuda_conv_direct_config;

HN_FAMILY_PACKED(hn_cuda_conv_direct);

#define hn_cuda_conv_direct_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 1, hn_cuda_conv_direct, __VA_ARGS__)

#endif
