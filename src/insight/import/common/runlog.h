/* Spans of a tool that records its runs (ONNX Runtime, msprof), before they become facts: which run each
 * belongs to is known only when the whole file has been read, and time stamps that were cut to microseconds
 * overlap where the work did not. For traces in which iterations must be guessed see timeline.h. */
#ifndef HN_INSIGHT_IMPORT_RUNLOG_H
#define HN_INSIGHT_IMPORT_RUNLOG_H

#include "base/vec.h"

#include <hone/facts.h>

enum { HN_RUNLOG_ASK = INT32_MIN }; /* iteration of a span: find it out */

/* What is kept of a span: there may be a million, and a second copy of each goes to the facts. */
typedef struct hn_runlog_span {
  int64_t start_ns, end_ns;
  const char *name, *op_type;
  int32_t lane, iteration, step;
  uint32_t launch;
  uint8_t kind; /* hone_span_kind */
} hn_runlog_span;

typedef struct hn_runlog {      /* zeroed: empty */
  HN_VEC(hn_runlog_span) spans; /* texts are borrowed until finish */
  HN_VEC(hone_span) runs;       /* kind RUN */
  bool failed;                  /* out of memory */
} hn_runlog;

/* Takes the members that hn_runlog_span has. */
void hn_runlog_add(hn_runlog *log, const hone_span *span);
/* A run of the network. Runs are numbered by their start. */
void hn_runlog_add_run(hn_runlog *log, int32_t lane, int64_t start_ns, int64_t end_ns);

/* Gives each span that asks the run that contains it (of several at once: the one on its lane, else the one
 * that began last; of none: -1; without runs: 0), straightens overlaps of up to `blur_ns` on a lane, lets
 * runs hold what belongs to them, and adds all to the facts. HONE_ERROR_MEMORY when memory ran out on the
 * way. */
hone_status hn_runlog_finish(hn_runlog *log, int64_t blur_ns, hone_facts *facts, hone_error *error);
void hn_runlog_free(hn_runlog *log);

#endif
