/* Units of matches, and which matches of custom operators become some. Inside of optimize/lower only. */
#ifndef HN_OPTIMIZE_LOWER_PATTERN_UNITS_H
#define HN_OPTIMIZE_LOWER_PATTERN_UNITS_H

#include "optimize/lower/lowering.h"
#include "optimize/match/patterns.h"

/* The unit of the match, at the place of its last node; NULL when memory is short. Its node is NULL when it
 * is an elementwise function that lowering cannot take as such. */
hn_unit *hn_pattern_unit(hn_lowering *l, const hn_pattern_hit *hit);

/* custom.c: a tactic takes the custom operator, and it is faster than its nodes by themselves, by measurement
 * where all of it was measured (hone_tune), else by prediction. What is against it becomes a near miss. */
bool hn_custom_wanted(hn_lowering *l, const hn_pattern_hit *hit);

#endif
