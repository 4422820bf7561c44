/* GridSample of f32 images at places of f32, of one to four spatial axes. */
#ifndef HN_CPU_SAMPLING_GRID_SAMPLE_STEP_H
#define HN_CPU_SAMPLING_GRID_SAMPLE_STEP_H

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"

bool hn_grid_step_accepts(const hone_step *step, const hone_machine *machine, hone_reason *why);
double hn_grid_step_cost(const hone_step *step, const hone_machine *machine);
hone_status hn_grid_step_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                              hone_error *error);
hone_status hn_grid_step_prepack(const hone_step *step, const hone_machine *machine, void *blob,
                                 hone_error *error);
hone_status hn_grid_step_run(const hone_step_run *run, hone_error *error);

#define hn_cpu_grid_sample_tactic(NAME, ANCHOR, ...)                                                         \
  HN_TACTIC(cpu, NAME, ANCHOR, 2, .accepts = hn_grid_step_accepts, .cost = hn_grid_step_cost,                \
            .need = hn_grid_step_need, .prepack = hn_grid_step_prepack, .run = hn_grid_step_run)

#endif
