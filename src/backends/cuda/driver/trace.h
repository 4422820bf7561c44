/* Traces of a queue: what the two ways of making them share. Inside of the backend only.
 *
 * capture.c asks CUPTI for activity records; capture_events.c records events around what is marked. Either
 * one leaves raw spans here; trace.c gives them runs and lanes. */
#ifndef HN_CUDA_DRIVER_TRACE_H
#define HN_CUDA_DRIVER_TRACE_H

#include "backends/cuda/driver/context.h"
#include "base/arena.h"
#include "base/map.h"

typedef struct hn_cuda_mark {
  hone_span_kind kind;
  int32_t step;
} hn_cuda_mark;

/* One way to make traces. Everything but open may assume that open succeeded. */
typedef struct hn_cuda_capture {
  hone_status (*open)(hn_trace *t, hone_error *error);
  hone_status (*mark)(hn_trace *t, uint32_t lane, hn_cuda_mark before, hn_cuda_mark now, hone_error *error);
  hone_status (*begin_run)(hn_trace *t, hone_error *error);
  hone_status (*end_run)(hn_trace *t, hone_error *error);
  hone_status (*collect)(hn_trace *t, hone_error *error); /* what is still on its way */
  void (*close)(hn_trace *t);
} hn_cuda_capture;

extern const hn_cuda_capture hn_cuda_capture_cupti, hn_cuda_capture_events;

struct hn_trace {
  hn_device *device;
  hn_queue *queue;
  const hn_cuda_capture *by;
  void *own; /* of the way it is made */
  hn_cuda_mark now[HN_LANES];
  HN_VEC(int64_t) runs;           /* when each began */
  int64_t closed;                 /* when the last one ended */
  HN_VEC(hone_span_record) spans; /* lane: 1 + the one it was given to */
  uint64_t lost;
  pthread_mutex_t lock; /* of spans, names and lost: records may come from a thread of CUPTI's */
  hn_arena text;
  hn_map names;
  char source[96], why[sizeof((hone_error *)0)->what];
};

static inline bool hn_cuda_marked(hn_cuda_mark m) { return m.kind < HONE_SPAN_KIND_COUNT; }

/* A span that the device has done; false when there is no memory for it. Takes the lock. */
bool hn_cuda_trace_add(hn_trace *t, hone_span_record span);
/* The same text for as long as the trace lives; NULL when out of memory. Takes the lock. */
const char *hn_cuda_trace_name(hn_trace *t, const char *name);

extern const hn_tracing hn_cuda_tracing;

#endif
