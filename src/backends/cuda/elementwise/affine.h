/* QuantizeLinear and DequantizeLinear: elementwise, the scales broadcast along their axis. */
#ifndef HN_CUDA_ELEMENTWISE_AFFINE_H
#define HN_CUDA_ELEMENTWISE_AFFINE_H

#include "backends/tactic.h"

bool hn_cuda_affine_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double hn_cuda_affine_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_affine_run(const hone_step_run *run, hone_error *error);

#define hn_cuda_affine_tactic(NAME, ANCHOR, ...)                                                             \
  HN_TACTIC(cuda, NAME, ANCHOR, 1, .accepts = hn_cuda_affine_accepts, .cost = hn_cuda_affine_cost,           \
            .run = hn_cuda_affine_run)

#endif
