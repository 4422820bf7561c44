/* Resize and Upsample of the two last spatial axes, nearest and linear, channels-last or row-major. The
 * source indices and weights are those of the operator's own tables (model/ops/sampling/resample.h), computed
 * at plan time. */
#ifndef HN_CPU_SAMPLING_RESIZE_STEP_H
#define HN_CPU_SAMPLING_RESIZE_STEP_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

bool hn_resize_step_accepts(const hone_step *step, const hone_machine *machine, hone_reason *why);
double hn_resize_step_cost(const hone_step *step, const hone_machine *machine);
hone_status hn_resize_step_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                                hone_error *error);
hone_status hn_resize_step_prepack(const hone_step *step, const hone_machine *machine, void *blob,
                                   hone_error *error);
hone_status hn_resize_step_run(const hone_step_run *run, hone_error *error);

#define hn_cpu_resize_tactic(NAME, ANCHOR, ...)                                                              \
  HN_TACTIC(cpu, NAME, ANCHOR, 2, .accepts = hn_resize_step_accepts, .cost = hn_resize_step_cost,            \
            .need = hn_resize_step_need, .prepack = hn_resize_step_prepack, .run = hn_resize_step_run)

#endif
