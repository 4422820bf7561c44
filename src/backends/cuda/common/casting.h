/* Conversions of whole tensors between number types. */
#ifndef HN_CUDA_COMMON_CASTING_H
#define HN_CUDA_COMMON_CASTING_H

#include "backends/cuda/common/elementwise.h"
#include "backends/cuda/common/tactic.h"

/* Appends the expression of value `from` (a variable's name) as a value of type `to`. */
void hn_cuda_convert(hn_str *text, const char *name, hone_dtype from, hone_dtype to);

bool hn_cuda_casting_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double hn_cuda_casting_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_casting_run(const hone_step_run *run, hone_error *error);

#define HN_CUDA_CASTING_TACTIC(nm, op)                                                                       \
  HN_CUDA_TACTIC_DESC(nm, op, .accepts = hn_cuda_casting_accepts, .cost = hn_cuda_casting_cost,              \
                      .run = hn_cuda_casting_run)

#endif
