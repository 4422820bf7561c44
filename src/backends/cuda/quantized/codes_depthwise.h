/* Tactics on codes_depthwise.cu: QLinearConv with one filter a channel. A tactic is a number of rows of the
 * output that a thread makes. */
#ifndef HN_CUDA_QUANTIZED_CODES_DEPTHWISE_H
#define HN_CUDA_QUANTIZED_CODES_DEPTHWISE_H

#include "backends/tactic.h"

typedef struct hn_codes_depthwise_config {
  int64_t rows;
} hn_codes_depthwise_config;

HN_FAMILY_PACKED(hn_codes_depthwise);

#define hn_cuda_codes_depthwise_tactic(NAME, ANCHOR, ...)                                                    \
  HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 1, hn_codes_depthwise, __VA_ARGS__)

#endif
