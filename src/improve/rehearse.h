/* Rehearsal: the steps of a plan that was decided but not built, timed one by one on this machine, each with
 * memory of its own and with caches as the rest of the model would leave them. Inside of improve and api. */
#ifndef HN_IMPROVE_REHEARSE_H
#define HN_IMPROVE_REHEARSE_H

#include "optimize/step/step.h"

#include <hone/improve.h>

/* Seconds of one execution by step of the plan; memory of the caller. Negative where there was no time for a
 * step; 0 for what has no tactic, and for steps that `known` (may be NULL) also has with the same work and
 * tactic: they were seen where they belong. */
hone_status hn_rehearse(const hn_plan *plan, const hn_plan *known, const hone_rehearsal_options *options,
                        double *seconds, hone_rehearsal *out, hone_error *error);

#endif
