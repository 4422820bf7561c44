/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss (normalize/likelihood.cu): a pass over the scores,
 * and, where losses are summed or averaged, a second small one over a pair a block. */
#ifndef HN_CUDA_NORMALIZE_LIKELIHOOD_H
#define HN_CUDA_NORMALIZE_LIKELIHOOD_H

#include "backends/tactic.h"

typedef struct hn_cuda_likelihood_config {
  bool softmax; /* of the scores, first */
} hn_cuda_likelihood_config;

HN_FAMILY_SIZED(hn_cuda_likelihood);

#define hn_cuda_likelihood_tactic(NAME, ANCHOR, ...)                                                         \
  HN_TACTIC_SIZED(cuda, NAME, ANCHOR, 1, hn_cuda_likelihood, __VA_ARGS__)

#endif
