/* Lowering: from the graph to steps. */
#ifndef HN_OPTIMIZE_LOWER_LOWER_H
#define HN_OPTIMIZE_LOWER_LOWER_H

#include "optimize/step/step.h"

/* Fills the slots and steps of a plan whose model and options are set, tactics included. */
hone_status hn_lower(hn_plan *plan, hone_error *error);

#endif
