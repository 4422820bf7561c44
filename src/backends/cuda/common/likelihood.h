/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss (tactics/likelihood.cu): a pass over the scores, and,
 * where losses are summed or averaged, a second small one over a pair a block. */
#ifndef HN_CUDA_COMMON_LIKELIHOOD_H
#define HN_CUDA_COMMON_LIKELIHOOD_H

#include "backends/cuda/common/tactic.h"

bool hn_cuda_likelihood_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double hn_cuda_likelihood_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_likelihood_need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,
                                    hone_error *error);
hone_status hn_cuda_likelihood_run(const hone_step_run *r, bool softmax, hone_error *error);

#define HN_CUDA_LIKELIHOOD(nm, op, softmax)                                                                  \
  static hone_status run(const hone_step_run *r, hone_error *e) {                                            \
    return hn_cuda_likelihood_run(r, softmax, e);                                                            \
  }                                                                                                          \
  HN_CUDA_TACTIC_DESC(nm, op, .accepts = hn_cuda_likelihood_accepts, .cost = hn_cuda_likelihood_cost,        \
                      .need = hn_cuda_likelihood_need, .run = run)

#endif
