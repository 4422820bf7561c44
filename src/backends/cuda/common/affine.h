/* QuantizeLinear and DequantizeLinear: elementwise, the scales broadcast along their axis. */
#ifndef HN_CUDA_COMMON_AFFINE_H
#define HN_CUDA_COMMON_AFFINE_H

#include "backends/cuda/common/elementwise.h"
#include "backends/cuda/common/tactic.h"

bool hn_cuda_affine_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double hn_cuda_affine_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_affine_run(const hone_step_run *run, hone_error *error);

#define HN_CUDA_AFFINE_TACTIC(nm, op)                                                                        \
  HN_CUDA_TACTIC_DESC(nm, op, .accepts = hn_cuda_affine_accepts, .cost = hn_cuda_affine_cost,                \
                      .run = hn_cuda_affine_run)

#endif
