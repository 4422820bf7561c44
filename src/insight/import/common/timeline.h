/* Traces of a host and its accelerators (Nsight Systems, Kineto), in whatever order their events come: joins
 * device work with the calls and operators that started it, finds the iterations, and makes facts of it.
 *
 * Memory is bounded: at most a fixed number of device events and of host events is kept. When there are more,
 * those that start latest go, so that what is kept is a whole prefix of the trace in time; the number of
 * events and the time of each name are counted over the whole trace all the same.
 *
 * Whose figures: with device work in the trace, that is what the iterations consist of, plus the host's
 * waiting (sync) and ranges named like stages (pre, post); other host events are kept for the time line,
 * outside the iterations, so that an idle device shows as a gap. Without device work it is the operators;
 * without these whatever calls and ranges there are. */
#ifndef HN_INSIGHT_IMPORT_TIMELINE_H
#define HN_INSIGHT_IMPORT_TIMELINE_H

#include "insight/import/import.h"

typedef enum hn_event_class {
  HN_EVENT_DEVICE, /* work on an accelerator, or its waiting (kind SYNC) */
  HN_EVENT_OP,     /* a framework's operator on a host thread */
  HN_EVENT_CALL,   /* a call of the accelerator's API on a host thread; kind SYNC: one that waits */
  HN_EVENT_FLOW,  /* only the place from which device work was started; instead of a call that is not recorded
                   */
  HN_EVENT_RANGE, /* what a user or library named: NVTX, record_function */
} hn_event_class;

typedef struct hn_event {
  hn_event_class class;
  hone_span_kind kind; /* of DEVICE and CALL, and of an OP that is a REFORMAT; the others' follows */
  int64_t start_ns, end_ns;
  uint32_t lane;        /* from hn_timeline_lane */
  const char *name;     /* copied; not NULL */
  uint64_t process;     /* in which correlation numbers are unique; 0 when there is but one */
  uint32_t correlation; /* 0: none */
  uint32_t op;     /* number of the operator: its own, or of other events the one that caused them; 0: none */
  uint32_t launch; /* row of the facts' launch table; 0: none */
  uint64_t bytes;
  uint8_t source_memory, target_memory; /* hone_memory_kind */
  bool reference;                       /* on an accelerator's slow core, which stands in for a kernel */
} hn_event;

typedef struct hn_timeline hn_timeline;

/* NULL when out of memory. */
hn_timeline *hn_timeline_create(void);
void hn_timeline_destroy(hn_timeline *t); /* NULL is fine */

/* A lane by the tool's own numbers; `device` tells streams from threads, `a` is then the device's number. The
 * same numbers give the same lane. name: copied when the lane is new. */
uint32_t hn_timeline_lane(hn_timeline *t, bool device, uint64_t a, uint64_t b, const char *name);
/* Changes a lane's name, whether it is known already or will be. */
void hn_timeline_name_lane(hn_timeline *t, bool device, uint64_t a, uint64_t b, const char *name);
/* Row of the facts' launch table for this launch, 0 when there are too many different ones. Set the struct to
 * zero before filling it. */
uint32_t hn_timeline_launch(hn_timeline *t, hone_facts *facts, const hone_launch *launch);
void hn_timeline_add(hn_timeline *t, const hn_event *event);
/* Is the API function one that waits for a device? */
bool hn_timeline_waits(const char *function);
/* How a memory is called by a tool ("Pageable", "Pinned", "Device", "Managed Static"). */
hone_memory_kind hn_timeline_memory(const char *word);

/* How many events of a class came. */
uint64_t hn_timeline_count(const hn_timeline *t, hn_event_class class);

/* Joins and fills the import's facts. */
hone_status hn_timeline_finish(hn_timeline *t, hn_import *in, hone_error *error);

#endif
