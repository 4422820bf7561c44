/* Tactics on conv_chain.cu: a convolution and the 1x1 behind it, whose input never reaches memory, on
 * Hopper's warpgroup products (arch 90). */
#ifndef HN_CUDA_PRODUCT_WGMMA_CHAIN_H
#define HN_CUDA_PRODUCT_WGMMA_CHAIN_H

#include "backends/tactic.h"

typedef struct hn_wgmma_chain_config {
  uint32_t wm;     /* 64s of rows that a warpgroup multiplies at once */
  uint32_t groups; /* warpgroups that share a tile: 2 or 3 */
} hn_wgmma_chain_config;

HN_FAMILY_PACKED(hn_wgmma_chain);

#define hn_cuda_wgmma_chain_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 3, hn_wgmma_chain, __VA_ARGS__)

#endif
