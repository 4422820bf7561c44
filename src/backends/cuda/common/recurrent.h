/* RNN, GRU and LSTM (tactics/recurrent.cu). */
#ifndef HN_CUDA_COMMON_RECURRENT_H
#define HN_CUDA_COMMON_RECURRENT_H

#include "backends/cuda/common/direct.h"

bool hn_cuda_recurrent(const hone_step *s, int gates, hn_cuda_direct *p, hone_reason *why);

#define HN_CUDA_RECURRENT(nm, op, gates)                                                                     \
  static bool plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {                                \
    return hn_cuda_recurrent(s, gates, p, why);                                                              \
  }                                                                                                          \
  HN_CUDA_TACTIC_UNPACKED(nm, op, hn_cuda_direct, plan)

#endif
