/* Tactics of cuBLASLt for codes of 8 bits: QLinearConv of 1x1 (with a sum or a table), QLinearGemm and
 * QLinearMatMul with constant weights. cuBLASLt multiplies i8 to sums in i32, which is exact; kernels of our
 * own make i8 of u8 before it, and codes of the sums (quantized/codes_sums.h). */
#ifndef HN_CUDA_LIBRARIES_LT_CODES_H
#define HN_CUDA_LIBRARIES_LT_CODES_H

#include "backends/tactic.h"

typedef struct hn_lt_codes_config {
  uint32_t candidate; /* which of the heuristics' algorithms */
} hn_lt_codes_config;

HN_FAMILY_COUNTED(hn_lt_codes);

#define hn_cuda_lt_codes_tactic(NAME, ANCHOR, ...)                                                           \
  HN_TACTIC_COUNTED(cuda, NAME, ANCHOR, 1, hn_lt_codes, __VA_ARGS__)

#endif
