/* Softmax and LogSoftmax over any axis, in any layout in which that axis is one evenly stepped dimension. */
#ifndef HN_CPU_COMMON_SOFTMAX_STEP_H
#define HN_CPU_COMMON_SOFTMAX_STEP_H

#include "backends/cpu/common/reduction.h"

bool hn_softmax_of(const hone_step *step, const hone_machine *machine, hn_reduction *r, hone_reason *why);
double hn_softmax_cost(const hone_step *step, const hone_machine *machine);
hone_status hn_softmax_prepack(const hone_step *step, const hone_machine *machine, void *blob,
                               hone_error *error);
hone_status hn_softmax_run(const hone_step_run *run, hone_error *error, bool log);

#endif
