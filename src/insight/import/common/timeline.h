/* Spans of a foreign timeline before they become facts: which run each belongs to is known only when the whole
 * file has been read, and time stamps that were cut to microseconds overlap where the work did not. */
#ifndef HN_INSIGHT_IMPORT_TIMELINE_H
#define HN_INSIGHT_IMPORT_TIMELINE_H

#include "base/vec.h"

#include <hone/facts.h>

enum { HN_TIMELINE_ASK = INT32_MIN }; /* iteration of a span: find it out */

typedef struct hn_timeline { /* zeroed: empty */
  HN_VEC(hone_span) spans;   /* texts are borrowed until finish */
  HN_VEC(hone_span) runs;    /* kind RUN */
  bool failed;               /* out of memory */
} hn_timeline;

void hn_timeline_add(hn_timeline *timeline, const hone_span *span);
/* A run of the network. Runs are numbered by their start. */
void hn_timeline_add_run(hn_timeline *timeline, int32_t lane, int64_t start_ns, int64_t end_ns);

/* Gives each span that asks the run that contains it (of several at once: the one on its lane, else the one
 * that began last; of none: -1; without runs: 0), straightens overlaps of up to `blur_ns` on a lane, lets runs
 * hold what belongs to them, and adds all to the facts. HONE_ERROR_MEMORY when memory ran out on the way. */
hone_status hn_timeline_finish(hn_timeline *timeline, int64_t blur_ns, hone_facts *facts, hone_error *error);
void hn_timeline_free(hn_timeline *timeline);

#endif
