/* Tactics on nbits_mma.cu: MatMulNBits with constant codes of 2, 4 or 8 bits on tensor cores. A tactic is a
 * tile; all of them pack alike. */
#ifndef HN_CUDA_PRODUCT_NBITS_MMA_H
#define HN_CUDA_PRODUCT_NBITS_MMA_H

#include "backends/tactic.h"

typedef struct hn_nbits_mma_config {
  uint32_t bm;               /* rows of a block, in eights */
  uint32_t strips;           /* sixteens of columns that a warp has */
  uint32_t warps_n, warps_k; /* warps along columns and K */
  uint32_t held;             /* groups of K that a warp has on their way */
  uint32_t stages;           /* tiles of A on their way */
  uint32_t blocks;           /* that a multiprocessor shall hold: how many registers a thread may have */
  uint32_t splits;           /* blocks that share a tile: each has a part of K */
} hn_nbits_mma_config;

HN_FAMILY_COUNTED(hn_nbits_mma);
HN_FAMILY_SHARED(hn_nbits_mma);

/* The tiles, named by rows x columns; what follows is how many blocks divide K among them. */
#define HN_NBITS_8x32 8, 1, 2, 4, 4, 2, 3
#define HN_NBITS_16x32 16, 1, 2, 4, 4, 2, 2
#define HN_NBITS_32x64 32, 1, 4, 2, 2, 3, 2
#define HN_NBITS_64x128 64, 2, 4, 1, 2, 3, 2

#define hn_cuda_nbits_mma_tactic(NAME, ANCHOR, ...)                                                          \
  HN_TACTIC_COUNTED_SHARED(cuda, NAME, ANCHOR, 1, hn_nbits_mma, __VA_ARGS__)

#endif
