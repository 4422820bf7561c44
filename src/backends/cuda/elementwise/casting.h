/* Conversions of whole tensors between number types. */
#ifndef HN_CUDA_ELEMENTWISE_CASTING_H
#define HN_CUDA_ELEMENTWISE_CASTING_H

#include "backends/tactic.h"

bool hn_cuda_casting_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double hn_cuda_casting_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_casting_run(const hone_step_run *run, hone_error *error);

#define hn_cuda_casting_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC(cuda, NAME, ANCHOR, 1, .accepts = hn_cuda_casting_accepts, .cost = hn_cuda_casting_cost,         \
            .run = hn_cuda_casting_run)

#endif
