/* RNN, GRU and LSTM (irregular/recurrent.cu). */
#ifndef HN_CUDA_IRREGULAR_RECURRENT_H
#define HN_CUDA_IRREGULAR_RECURRENT_H

#include "backends/cuda/step/direct.h"

bool hn_cuda_recurrent(const hone_step *s, int gates, hn_cuda_direct *p, hone_reason *why);

#define hn_cuda_recurrent_tactic(NAME, ANCHOR, GATES)                                                        \
  static bool NAME##_plan(const hone_step *s, hn_cuda_direct *p, hone_reason *why) {                         \
    return hn_cuda_recurrent(s, GATES, p, why);                                                              \
  }                                                                                                          \
  hn_cuda_direct_tactic(NAME, ANCHOR, NAME##_plan)

#endif
