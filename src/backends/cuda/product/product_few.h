/* Tactics on product_few.cu: Conv, Gemm and MatMul with constant weights in f16 or bf16 on tensor cores of
 * arch 80 and up, for products of few rows, that wait for memory rather than work. A tactic is a tile. */
#ifndef HN_CUDA_PRODUCT_PRODUCT_FEW_H
#define HN_CUDA_PRODUCT_PRODUCT_FEW_H

#include "backends/tactic.h"

typedef struct hn_product_few_config {
  uint32_t bm, bn;           /* rows and columns of a block */
  uint32_t warps_m, warps_k; /* warps along rows, and those that share K */
  uint32_t together;         /* chunks of 32 channels that a warp has on their way */
  uint32_t splits;           /* blocks that share a tile: each has a part of K */
} hn_product_few_config;

HN_FAMILY_PACKED(hn_product_few);

/* The tiles, named by rows x columns; what follows is how many blocks divide K among them. */
#define HN_FEW_16x16 16, 16, 1, 8, 4
#define HN_FEW_32x16 32, 16, 1, 8, 3
#define HN_FEW_32x32 32, 32, 1, 8, 2
#define HN_FEW_64x32 64, 32, 2, 4, 2

#define hn_cuda_product_few_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 1, hn_product_few, __VA_ARGS__)

#endif
