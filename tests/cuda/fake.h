/* The fake driver's insides. Everything here is called with the driver's one lock held.
 *
 * Work is queued and done late: when somebody waits for it, and then in an order drawn anew each time among
 * those that streams, events and graphs allow. What forgets to wait reads what is not there yet: new memory
 * is NaN, and device memory cannot be touched by the host at all. */
#ifndef HN_TESTS_CUDA_FAKE_H
#define HN_TESTS_CUDA_FAKE_H

#include "fibers.h"

#include <cuda.h>

/* ---- memory (fake_memory.c) */
void *fake_alloc(size_t bytes); /* device memory; NULL: there is none left */
bool fake_free(void *p);
void *fake_alloc_host(size_t bytes);
bool fake_free_host(void *p);
void fake_memory_info(size_t *free_bytes, size_t *total);
bool fake_is_device(const void *p, size_t bytes); /* within one allocation */
bool fake_touches_device(const void *p);
bool fake_is_pinned(const void *p);
/* Between the two the calling thread can touch device memory. Returns false, with the reason, when something
 * has been written around an allocation. */
void fake_unlock_memory(void);
bool fake_lock_memory(char *why, size_t size);

/* ---- work (fake_queue.c) */
typedef struct fake_module {
  struct fake_module *next;
  void *library;
  int fd;
  const hn_emu_module *emu;
  struct fake_function *functions;
} fake_module;

typedef struct fake_function {
  struct fake_function *next;
  fake_module *module;
  const hn_emu_entry *entry;
  unsigned shared; /* most dynamic bytes allowed */
  bool large_clusters;
} fake_function;

typedef struct fake_marker { /* one recording of an event */
  int references;
  bool done;
  double time;
} fake_marker;

typedef struct fake_event {
  struct fake_event *next;
  unsigned flags;
  fake_marker *marker;          /* NULL: never recorded */
  struct fake_capture *capture; /* recorded while captured: after these nodes */
  unsigned *after, afters;
} fake_event;

typedef enum fake_kind {
  FAKE_LAUNCH,
  FAKE_COPY,
  FAKE_SET,
  FAKE_CALL, /* a library's kernel: call(args) */
  FAKE_RECORD,
  FAKE_WAIT,
  FAKE_GRAPH
} fake_kind;

typedef struct fake_op {
  struct fake_op *next;
  fake_kind kind;
  fake_function *function;
  emu_launch launch;
  void *args, *staged; /* owned */
  void (*call)(const void *args);
  void *to;
  const void *from;
  size_t bytes;
  unsigned value, width;
  fake_event *event; /* of a record in a graph */
  fake_marker *marker;
  struct fake_graph *graph;
  fake_marker **markers; /* of the graph's records, by node */
} fake_op;

typedef struct fake_node {
  fake_op op;
  unsigned *after, afters;
} fake_node;

typedef struct fake_graph {
  struct fake_graph *next;
  int references;
  bool executable;
  fake_node *node;
  unsigned nodes;
} fake_graph;

typedef struct fake_stream {
  struct fake_stream *next;
  unsigned flags;
  fake_op *head, *tail;
  struct fake_capture *capture;
  unsigned *after, afters; /* captured: the next node comes after these */
  bool early;              /* what comes next may begin before the last work has ended: that is a kernel */
} fake_stream;

typedef struct fake_capture {
  fake_stream *origin;
  fake_graph *graph;
  CUstreamCaptureMode mode;
  unsigned long thread;
  bool broken;
} fake_capture;

extern CUresult fake_sticky; /* the context's fault */
extern char fake_sticky_text[600];

fake_stream *fake_stream_of(CUstream handle); /* NULL: no such stream */
fake_event *fake_event_of(CUevent handle);
fake_graph *fake_graph_of(void *handle, bool executable);

bool fake_register(void *p, size_t bytes); /* false: some of it is known already */
bool fake_unregister(void *p);
CUresult fake_stream_new(unsigned flags, CUstream *out);
CUresult fake_stream_delete(fake_stream *s);
CUresult fake_event_new(unsigned flags, CUevent *out);
CUresult fake_event_delete(fake_event *e);
CUresult fake_submit(fake_stream *s, const fake_op *op); /* takes what the operation owns */
CUresult fake_record(fake_stream *s, fake_event *e, bool external);
CUresult fake_wait(fake_stream *s, fake_event *e);
CUresult fake_sync_stream(fake_stream *s);
CUresult fake_sync_event(fake_event *e);
CUresult fake_sync_all(void);
CUresult fake_query_stream(fake_stream *s);
CUresult fake_query_event(fake_event *e);
/* What is refused while somebody captures: then that capture is broken too. */
CUresult fake_refuse_in_capture(void);
void fake_exchange_mode(
    CUstreamCaptureMode *mode); /* of the calling thread: relaxed, it is refused nothing */
CUresult fake_capture_begin(fake_stream *s, CUstreamCaptureMode mode);
CUresult fake_capture_end(fake_stream *s, CUgraph *out);
CUresult fake_instantiate(fake_graph *g, CUgraphExec *out);
void fake_graph_release(fake_graph *g);
void fake_forget_all(void); /* the context is gone */

#endif
