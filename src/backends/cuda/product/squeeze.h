/* Tactics on squeeze.cu: an average over all pixels, two products of it and what they scale, by a cluster an
 * image. */
#ifndef HN_CUDA_PRODUCT_SQUEEZE_H
#define HN_CUDA_PRODUCT_SQUEEZE_H

#include "backends/tactic.h"

typedef struct hn_squeeze_config {
  uint32_t threads; /* of a block */
} hn_squeeze_config;

HN_FAMILY_PACKED(hn_squeeze);

#define hn_cuda_squeeze_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 1, hn_squeeze, __VA_ARGS__)

#endif
