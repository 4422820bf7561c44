/* What lies around the gaps of the runs. */
#ifndef HN_INSIGHT_GAPS_H
#define HN_INSIGHT_GAPS_H

#include "insight/diagnose/rule.h"

/* The steps on both sides of the longest gaps, summed over the iterations, join the current finding as what
 * is beside it. */
void hn_gaps_beside(hn_diagnosis *d, size_t most);

#endif
