/* Tactics on product_mma.cu for codes of 8 bits: QLinearConv (with a sum), QLinearGemm and QLinearMatMul with
 * constant weights. A tactic is a tile. */
#ifndef HN_CUDA_QUANTIZED_CODES_MMA_H
#define HN_CUDA_QUANTIZED_CODES_MMA_H

#include "backends/cuda/product/product_mma.h"

typedef hn_mma_tile hn_codes_mma_config;

HN_FAMILY_COUNTED(hn_codes_mma);

#define hn_cuda_codes_mma_tactic(NAME, ANCHOR, ...)                                                          \
  HN_TACTIC_COUNTED(cuda, NAME, ANCHOR, 1, hn_codes_mma, __VA_ARGS__)

#endif
