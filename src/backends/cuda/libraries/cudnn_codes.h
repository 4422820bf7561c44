/* Tactics of cuDNN for codes of 8 bits: QLinearConv in two dimensions, of one group (with a sum or a table).
 * cuDNN multiplies i8 to sums of 32 bits, which is exact; kernels of our own make i8 of u8 before it, and
 * codes of the sums (quantized/codes_sums.h): what a graph of cuDNN would make of them may be rounded twice.
 */
#ifndef HN_CUDA_LIBRARIES_CUDNN_CODES_H
#define HN_CUDA_LIBRARIES_CUDNN_CODES_H

#include "backends/tactic.h"

typedef struct hn_cudnn_codes_config {
  hone_dtype sums;    /* as cuDNN writes them: i32, or f32 of what is exact in it */
  uint32_t candidate; /* which of the heuristics' engines */
} hn_cudnn_codes_config;

HN_FAMILY_COUNTED(hn_cudnn_codes);

#define hn_cuda_cudnn_codes_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_COUNTED(cuda, NAME, ANCHOR, 1, hn_cudnn_codes, __VA_ARGS__)

#endif
