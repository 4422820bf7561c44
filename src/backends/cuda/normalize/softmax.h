/* Softmax, LogSoftmax and Hardmax. */
#ifndef HN_CUDA_NORMALIZE_SOFTMAX_H
#define HN_CUDA_NORMALIZE_SOFTMAX_H

#include "backends/cuda/normalize/normalize.h"
#include "base/error.h"

/* The step as rows of this kind. */
bool hn_cuda_softmax(const hone_step *s, hn_row_kind kind, hn_rows *rows, hone_reason *why);

#define hn_cuda_softmax_tactic(NAME, ANCHOR, KIND)                                                           \
  static bool NAME##_read(const hone_step *s, hn_rows *rows, hone_reason *why) {                             \
    return hn_cuda_softmax(s, KIND, rows, why);                                                              \
  }                                                                                                          \
  HN_CUDA_ROWS(NAME, ANCHOR, NAME##_read)

#endif
