/* ArgMax and ArgMin (tactics/arg.cu). */
#ifndef HN_CUDA_COMMON_ARG_H
#define HN_CUDA_COMMON_ARG_H

#include "backends/cuda/common/tactic.h"

bool hn_cuda_arg_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double hn_cuda_arg_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_arg_run(const hone_step_run *r, bool largest, hone_error *error);

#define HN_CUDA_ARG(nm, op, largest)                                                                         \
  static hone_status run(const hone_step_run *r, hone_error *e) { return hn_cuda_arg_run(r, largest, e); }   \
  HN_CUDA_TACTIC_DESC(nm, op, .accepts = hn_cuda_arg_accepts, .cost = hn_cuda_arg_cost, .run = run)

#endif
