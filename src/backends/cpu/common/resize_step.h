/* Resize and Upsample of the two last spatial axes, nearest and linear, channels-last or row-major. The
 * source indices and weights are those of the operator's own tables (model/ops/common/resample.h), computed
 * at plan time. */
#ifndef HN_CPU_COMMON_RESIZE_STEP_H
#define HN_CPU_COMMON_RESIZE_STEP_H

#include "backends/cpu/common/step.h"

bool hn_resize_step_accepts(const hone_step *step, const hone_machine *machine, hone_reason *why);
double hn_resize_step_cost(const hone_step *step, const hone_machine *machine);
hone_status hn_resize_step_need(const hone_step *step, const hone_machine *machine, hone_tactic_need *need,
                                hone_error *error);
hone_status hn_resize_step_prepack(const hone_step *step, const hone_machine *machine, void *blob,
                                   hone_error *error);
hone_status hn_resize_step_run(const hone_step_run *run, hone_error *error);

#endif
