/* Conv with constant weights on conv_turned.cu (arch 90): tiles of channels x any eights of pixels. A
 * tactic is a number of channels, and of blocks that divide K; how many pixels a tile has follows from the
 * step. */
#ifndef HN_CUDA_PRODUCT_WGMMA_TURNED_H
#define HN_CUDA_PRODUCT_WGMMA_TURNED_H

#include "backends/tactic.h"

typedef struct hn_wgmma_turned_config {
  uint32_t wm;     /* 64s of channels of a warpgroup */
  uint32_t splits; /* blocks of a cluster, which divide K; 1: no clusters */
} hn_wgmma_turned_config;

HN_FAMILY_PACKED(hn_wgmma_turned);

#define hn_cuda_wgmma_turned_tactic(NAME, ANCHOR, ...)                                                       \
  HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 1, hn_wgmma_turned, __VA_ARGS__)

#endif
