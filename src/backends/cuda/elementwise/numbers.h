/* Elementwise operators on their own: those that pointwise programs, which are f32, do not have, and all of
 * them on integers and f64, exactly as the references define them. (Integer division by zero, which is an
 * error there, gives 0.) */
#ifndef HN_CUDA_ELEMENTWISE_NUMBERS_H
#define HN_CUDA_ELEMENTWISE_NUMBERS_H

#include "backends/tactic.h"

bool hn_cuda_numbers_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double hn_cuda_numbers_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_numbers_run(const hone_step_run *run, hone_error *error);

#define hn_cuda_numbers_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC(cuda, NAME, ANCHOR, 1, .accepts = hn_cuda_numbers_accepts, .cost = hn_cuda_numbers_cost,         \
            .run = hn_cuda_numbers_run)

#endif
