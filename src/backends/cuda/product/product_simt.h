/* Tactics on product_simt.cu: Conv, Gemm and MatMul in f32 arithmetic, of operands in any form. */
#ifndef HN_CUDA_PRODUCT_PRODUCT_SIMT_H
#define HN_CUDA_PRODUCT_PRODUCT_SIMT_H

#include "backends/cuda/product/product.h"
#include "backends/tactic.h"

typedef struct hn_simt_tile {
  uint32_t bm, bn;   /* rows and columns of a block of 256 threads: 64 or 128 */
  double efficiency; /* of the f32 peak where a launch fills the machine */
} hn_simt_tile;
typedef hn_simt_tile hn_product_simt_config;

HN_FAMILY_PACKED(hn_product_simt);
HN_FAMILY_SHARED(hn_product_simt);

#define hn_cuda_product_simt_tactic(NAME, ANCHOR, ...)                                                       \
  HN_TACTIC_PACKED_SHARED(cuda, NAME, ANCHOR, 1, hn_product_simt, __VA_ARGS__)

#endif
