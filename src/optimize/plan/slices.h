/* Large batches a few samples at a time.
 *
 * What a step makes of a large batch leaves the caches before the next one reads it. Where that costs more
 * than to read all weights again, the whole network runs on a slice of the batch, then on the next one: the
 * plan is one for a slice, and a context runs its steps hn_plan.slices times. Activations take a slice's
 * memory. Only for networks of which it is proved that samples do not meet, on devices that share the host's
 * memory. */
#ifndef HN_OPTIMIZE_PLAN_SLICES_H
#define HN_OPTIMIZE_PLAN_SLICES_H

#include "optimize/step/step.h"

/* Into how many slices the batch of a plan (chosen, but not packed or placed yet) may be cut: `wanted` (0:
 * the number that costs least), or 1 with a reason. Whether samples meet is not looked at. */
uint32_t hn_plan_slices(const hn_plan *plan, uint32_t wanted, hone_reason *why);

/* hn_model_bind, to one of *slices parts of the batch: the model to plan then. To the whole, with *slices 1
 * and a reason, where it cannot be cut, or where it is not proved that slices give what the whole gives. */
hone_status hn_slice_bind(hn_model *model, const hone_binding *bindings, uint32_t n, int64_t batch,
                          uint32_t *slices, hn_model **out, hone_reason *why, hone_error *error);

/* The plan is one of so many slices: callers see the whole batch (input_desc, output_desc). False with a
 * reason where it cannot be, as of a saved plan that was made up. */
bool hn_plan_set_slices(hn_plan *plan, uint32_t slices, hone_reason *why);

#endif
