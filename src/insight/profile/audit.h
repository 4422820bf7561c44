/* Does the record agree with itself? A profile that contradicts itself is shown with the contradiction, not
 * silently. */
#ifndef HN_INSIGHT_AUDIT_H
#define HN_INSIGHT_AUDIT_H

#include "base/arena.h"

#include <hone/insight.h>

/* Checks a finished, unfiltered table of layers (all rows) against the closure, the walls and the spans.
 * *doubt becomes NULL or the first contradiction, in the arena. HONE_ERROR_MEMORY when out of memory. */
hone_status hn_audit(const hone_profile *profile, const hone_layer *rows, size_t row_count, hn_arena *arena,
                     const char **doubt, hone_error *error);

/* Fills profile->beaten from all rows of the layer table. False: out of memory. */
bool hn_find_beaten(hone_profile *profile, const hone_layer *rows, size_t count, hn_arena *arena);

#endif
