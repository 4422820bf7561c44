/* Lists of records under construction. */
#ifndef HN_INSIGHT_RECORD_H
#define HN_INSIGHT_RECORD_H

#include "base/arena.h"

#include <hone/history.h>

/* Appends an empty record (numbers NaN) to a zeroed or earlier list; NULL when out of memory. The pointer
 * holds until the next call. */
hone_record *hn_records_add(hone_records *out);
/* A copy that lives as long as the list; NULL when out of memory. */
const char *hn_records_text(hone_records *out, const char *text, size_t length);

#endif
