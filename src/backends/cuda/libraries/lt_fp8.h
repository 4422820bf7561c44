/* Tactics of cuBLASLt that multiply in e4m3 (precision fp8, from compute capability 8.9 on): MatMul, Gemm and
 * Conv of 1x1 at stride 1 by constant weights. One scale for the weights, found when they are packed, and one
 * for the other operand, found in each run (fp8.cu); sums and the epilogue are cuBLASLt's, in f32, and the
 * result is of the step's storage type. */
#ifndef HN_CUDA_LIBRARIES_LT_FP8_H
#define HN_CUDA_LIBRARIES_LT_FP8_H

#include "backends/cuda/libraries/lt_step.h"

typedef hn_lt_config hn_lt_fp8_config;

HN_FAMILY_COUNTED(hn_lt_fp8);

#define hn_cuda_lt_fp8_tactic(NAME, ANCHOR, ...)                                                             \
  HN_TACTIC_COUNTED(cuda, NAME, ANCHOR, 1, hn_lt_fp8, __VA_ARGS__)

#endif
