/* Tactics on product_few.cu: 1x1 Conv, Gemm and MatMul with constant weights in f16 or bf16 on tensor cores
 * of arch 80 and up, for products of few rows, which wait for memory rather than work. A tactic is a tile. */
#ifndef HN_CUDA_PRODUCT_PRODUCT_FEW_H
#define HN_CUDA_PRODUCT_PRODUCT_FEW_H

#include "backends/tactic.h"

typedef struct hn_product_few_config {
  uint32_t bm, bn;   /* rows and columns of a block, in sixteens */
  uint32_t together; /* chunks of 32 elements of K that a warp has on their way */
  uint32_t blocks;   /* that a multiprocessor shall hold: how many registers a thread may have */
  double finish;     /* seconds that the tile's sums take to meet, beyond those of 16 x 16 */
} hn_product_few_config;

HN_FAMILY_PACKED(hn_product_few);
HN_FAMILY_SHARED(hn_product_few);

/* The tiles, named by rows x columns. */
#define HN_FEW_16x16 16, 16, 4, 2, 0
#define HN_FEW_32x16 32, 16, 3, 2, 0.4e-6
#define HN_FEW_32x32 32, 32, 3, 1, 0.6e-6

#define hn_cuda_product_few_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_PACKED_SHARED(cuda, NAME, ANCHOR, 1, hn_product_few, __VA_ARGS__)

#endif
