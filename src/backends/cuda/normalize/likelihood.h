/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss (normalize/likelihood.cu): a pass over the scores,
 * and, where losses are summed or averaged, a second small one over a pair a block. */
#ifndef HN_CUDA_NORMALIZE_LIKELIHOOD_H
#define HN_CUDA_NORMALIZE_LIKELIHOOD_H

#include "backends/tactic.h"

typedef struct hn_cuda_likelihood_config {
  bool softmax; /* of the scores, first */
} hn_cuda_likelihood_config;

bool hn_cuda_likelihood_accepts(const hone_step *s, const hone_machine *m,
                                const hn_cuda_likelihood_config *config, hone_reason *why);
double hn_cuda_likelihood_cost(const hone_step *s, const hone_machine *m,
                               const hn_cuda_likelihood_config *config);
hone_status hn_cuda_likelihood_need(const hone_step *s, const hone_machine *m,
                                    const hn_cuda_likelihood_config *config, hone_tactic_need *n,
                                    hone_error *error);
hone_status hn_cuda_likelihood_run(const hone_step_run *r, const hn_cuda_likelihood_config *config,
                                   hone_error *error);

#define hn_cuda_likelihood_tactic(NAME, ANCHOR, ...)                                                         \
  HN_TACTIC_SIZED(cuda, NAME, ANCHOR, 1, hn_cuda_likelihood, __VA_ARGS__)

#endif
