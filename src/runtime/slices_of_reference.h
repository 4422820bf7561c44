/* References of elementwise operators on all threads. */
#ifndef HN_RUNTIME_SLICES_OF_REFERENCE_H
#define HN_RUNTIME_SLICES_OF_REFERENCE_H

#include "optimize/plan/plan.h"

/* False: it is none, or too small. *status says how it went, and nobody why: who fails is to be asked again
 * as a whole. */
bool hn_reference_in_slices(const hn_plan *p, hone_call *call, const hone_op_desc *op, hone_status *status);

#endif
