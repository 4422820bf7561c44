/* Tactics on conv_turned.cu for codes of 8 bits: QLinearConv (with a sum, with a table), QLinearGemm and
 * QLinearMatMul with constant weights, in tiles of channels x any sixteens of pixels (arch 90). */
#ifndef HN_CUDA_QUANTIZED_CODES_TURNED_H
#define HN_CUDA_QUANTIZED_CODES_TURNED_H

#include "backends/cuda/wgmma/wgmma_turned.h"

typedef hn_wgmma_turned_config hn_codes_turned_config;

HN_FAMILY_COUNTED(hn_codes_turned);

#define hn_cuda_codes_turned_tactic(NAME, ANCHOR, ...)                                                       \
  HN_TACTIC_COUNTED(cuda, NAME, ANCHOR, 1, hn_codes_turned, __VA_ARGS__)

#endif
