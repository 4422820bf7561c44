/* Tactics on conv_wgmma.cu for codes of 8 bits: QLinearConv (with a sum), QLinearGemm and QLinearMatMul with
 * constant weights on Hopper's warpgroup products (arch 90). A tactic is a tile. */
#ifndef HN_CUDA_QUANTIZED_CODES_WGMMA_H
#define HN_CUDA_QUANTIZED_CODES_WGMMA_H

#include "backends/cuda/wgmma/wgmma.h"

typedef hn_wgmma_tile hn_codes_wgmma_config;

HN_FAMILY_COUNTED(hn_codes_wgmma);

#define hn_cuda_codes_wgmma_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_COUNTED(cuda, NAME, ANCHOR, 1, hn_codes_wgmma, __VA_ARGS__)

#endif
