/* Tactics on product_mma.cu: Conv, Gemm and MatMul on tensor cores of architecture 75 and up. A tactic is a
 * tile. */
#ifndef HN_CUDA_PRODUCT_PRODUCT_MMA_H
#define HN_CUDA_PRODUCT_PRODUCT_MMA_H

#include "backends/cuda/product/product.h"
#include "backends/tactic.h"

typedef struct hn_mma_tile {
  uint32_t bm, bn;                    /* rows and columns of a block */
  uint32_t warps_m, warps_n, warps_k; /* warps along rows, columns, and the steps of K */
  uint32_t stages;                    /* tiles of K in flight, where there is room for so many */
  uint32_t splits;                    /* blocks that share a tile: each has a part of K */
} hn_mma_tile;
typedef hn_mma_tile hn_product_mma_config;

HN_FAMILY_COUNTED(hn_product_mma);
HN_FAMILY_SHARED(hn_product_mma);

/* For any step that hn_product_of or hn_product_of_codes has read: whether the tile takes it (sets tiles and
 * splits in p), predicted seconds, and the launch, with `more` in the text's prefix. three: f32 as three
 * products of tf32 parts. */
bool hn_mma_fits(const hone_step *s, hn_product *p, const hone_machine *m, const hn_mma_tile *t,
                 hone_reason *why);
double hn_mma_seconds(const hn_product *p, const hone_machine *m, const hn_mma_tile *t, bool three);
hone_status hn_mma_launch(const hone_step_run *run, hn_product *p, const hn_mma_tile *t, bool three,
                          const char *more, hone_error *error);

/* The tiles, named by rows x columns; what follows is how many blocks divide K among them. */
#define HN_MMA_128x128 128, 128, 2, 2, 1, 3
#define HN_MMA_128x64 128, 64, 4, 2, 1, 4
#define HN_MMA_64x64 64, 64, 2, 2, 1, 4
#define HN_MMA_32x64 32, 64, 1, 2, 2, 6
#define HN_MMA_32x32 32, 32, 1, 1, 4, 8
#define HN_MMA_16x64 16, 64, 1, 2, 4, 8

#define hn_cuda_product_mma_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_COUNTED_SHARED(cuda, NAME, ANCHOR, 1, hn_product_mma, __VA_ARGS__)

#endif
