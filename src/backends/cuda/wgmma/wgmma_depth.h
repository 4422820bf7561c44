/* Tactics on depth_chain.cu: a depthwise convolution and the 1x1 behind it, whose input never reaches memory,
 * on Hopper's warpgroup products (arch 90). */
#ifndef HN_CUDA_PRODUCT_WGMMA_DEPTH_H
#define HN_CUDA_PRODUCT_WGMMA_DEPTH_H

#include "backends/tactic.h"

typedef struct hn_wgmma_depth_config {
  uint32_t wm; /* a tile has at most 64 wm pixels */
} hn_wgmma_depth_config;

HN_FAMILY_PACKED(hn_wgmma_depth);

#define hn_cuda_wgmma_depth_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 1, hn_wgmma_depth, __VA_ARGS__)

#endif
