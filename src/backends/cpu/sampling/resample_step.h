/* Resize and Upsample of row-major f32 along any axes: all modes, antialiasing, crops. One pass an axis, by
 * the operator's own tables (model/ops/sampling/resample.h), computed at plan time. */
#ifndef HN_CPU_SAMPLING_RESAMPLE_STEP_H
#define HN_CPU_SAMPLING_RESAMPLE_STEP_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

bool hn_resample_step_accepts(const hone_step *step, const hone_machine *machine, hone_reason *why);
double hn_resample_step_cost(const hone_step *step, const hone_machine *machine);
hone_status hn_resample_step_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                                  hone_error *error);
hone_status hn_resample_step_prepack(const hone_step *step, const hone_machine *machine, void *blob,
                                     hone_error *error);
hone_status hn_resample_step_run(const hone_step_run *run, hone_error *error);

#define hn_cpu_resample_tactic(NAME, ANCHOR, ...)                                                            \
  HN_TACTIC(cpu, NAME, ANCHOR, 1, .accepts = hn_resample_step_accepts, .cost = hn_resample_step_cost,        \
            .need = hn_resample_step_need, .prepack = hn_resample_step_prepack, .run = hn_resample_step_run)

#endif
