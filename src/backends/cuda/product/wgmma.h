/* Tactics on conv_wgmma.cu: Conv, Gemm and MatMul with constant B on Hopper's warpgroup products (arch 90). A
 * tactic is a tile. */
#ifndef HN_CUDA_PRODUCT_WGMMA_H
#define HN_CUDA_PRODUCT_WGMMA_H

#include "backends/tactic.h"

typedef struct hn_wgmma_tile {
  uint32_t wm;    /* 64s of rows that a warpgroup multiplies at once */
  uint32_t bn;    /* columns */
  bool alternate; /* the two warpgroups take turns in tiles; else they share one */
  bool split;     /* a cluster divides K of a tile of 64 rows */
} hn_wgmma_tile;
typedef hn_wgmma_tile hn_wgmma_config;

HN_FAMILY_PACKED(hn_wgmma);

/* The tiles, named by rows x columns. */
#define HN_WGMMA_64x64 1, 64, true, false
#define HN_WGMMA_64x128 1, 128, true, false
#define HN_WGMMA_128x64 2, 64, true, false
#define HN_WGMMA_128x128 2, 128, true, false
#define HN_WGMMA_256x128 2, 128, false, false
#define HN_WGMMA_SPLIT_64 1, 64, false, true
#define HN_WGMMA_SPLIT_32 1, 32, false, true

#define hn_cuda_wgmma_tactic(NAME, ANCHOR, ...) HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 1, hn_wgmma, __VA_ARGS__)

#endif
