/* What a plan that was not built would take, from its cost models and a profile of another plan of the model.
 */
#ifndef HN_INSIGHT_FORECAST_H
#define HN_INSIGHT_FORECAST_H

#include "base/arena.h"

#include <hone/insight.h>

/* Milliseconds of every preview step, in the arena; NULL when there are none, or out of memory. */
const double *hn_forecast_steps(const hone_profile *p, hn_arena *arena);

#endif
