/* Traces from CUPTI's activity records.
 *
 * Work that is launched in graphs is known by its node: CUPTI tells when a node is made (during capture, when
 * the mark of the lane says which step is being captured) and when it is cloned (into the executable graph,
 * whose nodes the records name). Other work is known by an external correlation id that stands while its step
 * is launched, or, copies outside of steps, by its stream. There is one CUPTI in a process, so all traces
 * share a session; it ends with the last of them. */
#include "backends/cuda/driver/trace.h"

#ifndef HN_HAVE_CUPTI
#include "base/error.h"

static hone_status no_headers(hn_trace *t, hone_error *error) {
  (void)t;
  return hn_fail(error, HONE_ERROR_MISSING, "this hone was built without CUPTI's headers");
}

const hn_cuda_capture hn_cuda_capture_cupti = {.open = no_headers};
#else
#include "backends/cuda/driver/dl_cupti.h"
#include "backends/cuda/driver/queue.h"
#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 20, MOST_TRACES = 32 };

/* Whom a graph's node works for. */
typedef struct node {
  uint64_t id;
  uint16_t trace; /* number of the trace plus 1; 0: an empty place of the table */
  uint8_t lane;
  hn_cuda_mark mark;
} node;

/* A record that was not yet given to a trace: what it belongs to may come with a later buffer. */
typedef struct activity {
  uint64_t start, end, node, bytes;
  const char *name; /* CUPTI's own, good while its module is loaded */
  uint32_t correlation, context, stream;
  hone_span_kind kind;
} activity;

typedef struct external {
  uint32_t correlation;
  uint64_t id; /* trace plus 1, lane, kind and step of the mark, packed */
} external;

/* The same moment on CUPTI's clock and on the host's. */
typedef struct clock_pair {
  int64_t cupti, host;
} clock_pair;

static struct session {
  pthread_mutex_t lock;
  bool loaded, failed;
  hone_error why; /* it failed */
  hn_dl_cupti cu;
  CUpti_SubscriberHandle subscriber;
  uint32_t version, open;
  hn_trace *trace[MOST_TRACES];
  node *node; /* hash table of node_cap places, a power of two */
  size_t node_cap, node_count;
  HN_VEC(activity) waiting;
  HN_VEC(external) externals;
  HN_VEC(uint8_t *) spare; /* buffers */
  uint64_t lost;
  clock_pair first; /* when the session began */
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What this thread is capturing or launching, for callbacks that CUPTI makes on it. */
static _Thread_local struct {
  uint16_t trace; /* plus 1 */
  uint8_t lane;
  hn_cuda_mark mark;
} current;

static hone_status check(CUptiResult r, const char *call, hone_error *error) {
  if (r == CUPTI_SUCCESS) return HONE_OK;
  const char *text = NULL;
  session.cu.cuptiGetResultString(r, &text);
  hn_fail(error, HONE_ERROR_MISSING, "CUPTI refuses: %s: %s", call, text ? text : "an unknown error");
  if (r == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES || r == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
    hn_error_hint(error, "profiling is allowed to root, or to all with the driver's option "
                         "NVreg_RestrictProfilingToAdminUsers=0");
  return HONE_ERROR_MISSING;
}
#define CU(error, call, ...) check(session.cu.call(__VA_ARGS__), #call, (error))

/* ------------------------------------------------------------------ nodes */

static node *node_place(uint64_t id) {
  if (!session.node_cap) return NULL;
  size_t at = (size_t)(id * 0x9e3779b97f4a7c15u) & (session.node_cap - 1);
  while (session.node[at].trace && session.node[at].id != id) at = (at + 1) & (session.node_cap - 1);
  return &session.node[at];
}

static void node_keep(node n) {
  if (2 * (session.node_count + 1) > session.node_cap) {
    node *old = session.node;
    const size_t cap = session.node_cap;
    node *bigger = hn_calloc(cap ? 2 * cap : 256, sizeof *bigger);
    if (!bigger) {
      session.lost++;
      return;
    }
    session.node = bigger;
    session.node_cap = cap ? 2 * cap : 256;
    for (size_t i = 0; i < cap; i++)
      if (old[i].trace) *node_place(old[i].id) = old[i];
    hn_free(old);
  }
  node *place = node_place(n.id);
  session.node_count += !place->trace;
  *place = n;
}

static void CUPTIAPI on_resource(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data) {
  (void)user;
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || !data) return;
  const CUpti_GraphData *graph = ((const CUpti_ResourceData *)data)->resourceDescriptor;
  uint64_t made = 0, original = 0;
  if (!graph || session.cu.cuptiGetGraphNodeId(graph->node, &made) != CUPTI_SUCCESS) return;
  pthread_mutex_lock(&session.lock);
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED && current.trace) {
    node_keep((node){made, current.trace, current.lane, current.mark});
  } else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED && graph->originalNode &&
             session.cu.cuptiGetGraphNodeId(graph->originalNode, &original) == CUPTI_SUCCESS) {
    const node *from = node_place(original);
    if (from && from->trace) {
      node copy = *from;
      copy.id = made;
      node_keep(copy);
    }
  }
  pthread_mutex_unlock(&session.lock);
}

/* ------------------------------------------------------------------ records */

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *most) {
  pthread_mutex_lock(&session.lock);
  *buffer = session.spare.len ? session.spare.ptr[--session.spare.len] : hn_aligned(64, BUFFER);
  pthread_mutex_unlock(&session.lock);
  *size = *buffer ? BUFFER : 0;
  *most = 0;
}

static hone_span_kind copy_kind(uint8_t kind) {
  switch (kind) {
  case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
  case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return HONE_SPAN_COPY_H2D;
  case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
  case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return HONE_SPAN_COPY_D2H;
  default: return HONE_SPAN_COPY;
  }
}

static void keep_activity(activity a) {
  if (a.end < a.start || !a.start || !hn_vec_push(&session.waiting, a)) session.lost++;
}

static void read_record(const CUpti_Activity *record) {
  switch (record->kind) {
  case CUPTI_ACTIVITY_KIND_KERNEL:
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
    const CUpti_ActivityKernel10 *k = (const void *)record;
    keep_activity((activity){k->start, k->end, k->graphNodeId, 0, k->name, k->correlationId, k->contextId,
                             k->streamId, HONE_SPAN_KERNEL});
    break;
  }
  case CUPTI_ACTIVITY_KIND_MEMCPY: {
    const CUpti_ActivityMemcpy6 *m = (const void *)record;
    keep_activity((activity){m->start, m->end, m->graphNodeId, m->bytes, NULL, m->correlationId, m->contextId,
                             m->streamId, copy_kind(m->copyKind)});
    break;
  }
  case CUPTI_ACTIVITY_KIND_MEMSET: {
    const CUpti_ActivityMemset4 *m = (const void *)record;
    keep_activity((activity){m->start, m->end, m->graphNodeId, m->bytes, "memset", m->correlationId,
                             m->contextId, m->streamId, HONE_SPAN_KERNEL});
    break;
  }
  case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
    const CUpti_ActivityExternalCorrelation *e = (const void *)record;
    if (!hn_vec_push(&session.externals, (external){e->correlationId, e->externalId})) session.lost++;
    break;
  }
  default: break;
  }
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
  CUpti_Activity *record = NULL;
  size_t dropped = 0;
  (void)size;
  pthread_mutex_lock(&session.lock);
  while (valid && session.cu.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    read_record(record);
  if (session.cu.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
    session.lost += dropped;
  if (!hn_vec_push(&session.spare, buffer)) hn_free(buffer);
  pthread_mutex_unlock(&session.lock);
}

/* ------------------------------------------------------------------ the session */

/* The closest of some readings. */
static clock_pair read_clocks(void) {
  clock_pair best = {0, 0};
  int64_t least = INT64_MAX;
  for (int i = 0; i < 16; i++) {
    uint64_t cupti = 0;
    const int64_t before = (int64_t)hn_now_ns();
    if (session.cu.cuptiGetTimestamp(&cupti) != CUPTI_SUCCESS) break;
    const int64_t after = (int64_t)hn_now_ns();
    if (after - before >= least) continue;
    least = after - before;
    best = (clock_pair){(int64_t)cupti, before + (after - before) / 2};
  }
  return best;
}

/* On the host's clock; the two drift apart steadily. */
static int64_t host_time(clock_pair a, clock_pair b, uint64_t cupti) {
  const double from = (double)(b.cupti - a.cupti), drift = (double)((b.host - a.host) - (b.cupti - a.cupti));
  const int64_t since = (int64_t)cupti - a.cupti;
  return a.host + since + (from > 0 ? (int64_t)(drift * ((double)since / from)) : 0);
}

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_DRIVER};
static const CUpti_CallbackId callbacks[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                             CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};

static void session_end(void) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) session.cu.cuptiActivityDisable(kinds[i]);
  if (session.subscriber) session.cu.cuptiUnsubscribe(session.subscriber);
  session.subscriber = NULL;
}

static void session_forget(void) {
  for (size_t i = 0; i < session.spare.len; i++) hn_free(session.spare.ptr[i]);
  hn_vec_free(&session.spare);
  hn_vec_free(&session.waiting);
  hn_vec_free(&session.externals);
  hn_free(session.node);
  session.node = NULL;
  session.node_cap = session.node_count = 0;
  session.lost = 0;
}

/* Without the lock: CUPTI may call back. */
static hone_status session_begin(hone_error *error) {
  hone_status status = HONE_OK;
  if (!session.loaded) {
    if (!session.failed) session.failed = hn_dl_cupti_load(&session.cu, NULL, 0, &session.why) != HONE_OK;
    if (session.failed) {
      if (error) *error = session.why;
      return session.why.status;
    }
    session.loaded = true;
  }
  status = CU(error, cuptiGetVersion, &session.version);
  /* Records of another generation are laid out in another way. */
  if (status == HONE_OK && session.version / 10000 != CUPTI_API_VERSION / 10000)
    return hn_fail(error, HONE_ERROR_MISSING, "this hone was built for CUPTI %d, and the library is of %u",
                   CUPTI_API_VERSION / 10000, session.version / 10000);
  if (status == HONE_OK) status = CU(error, cuptiSubscribe, &session.subscriber, on_resource, NULL);
  for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks && status == HONE_OK; i++)
    status = CU(error, cuptiEnableCallback, 1, session.subscriber, CUPTI_CB_DOMAIN_RESOURCE, callbacks[i]);
  if (status == HONE_OK) status = CU(error, cuptiActivityRegisterCallbacks, on_request, on_complete);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == HONE_OK; i++)
    status = CU(error, cuptiActivityEnable, kinds[i]);
  if (status == HONE_OK)
    session.first = read_clocks();
  else
    session_end();
  return status;
}

/* Opening and closing happen one after another; `lock` is for what CUPTI's threads touch. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static hone_status capture_open(hn_trace *t, hone_error *error) {
  pthread_mutex_lock(&opening);
  hone_status status = session.open ? HONE_OK : session_begin(error);
  uint32_t at = 0;
  while (at < MOST_TRACES && session.trace[at]) at++;
  if (status == HONE_OK && at == MOST_TRACES)
    status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "%d traces are open already", MOST_TRACES);
  if (status == HONE_OK) {
    session.open++;
    pthread_mutex_lock(&session.lock);
    session.trace[at] = t;
    pthread_mutex_unlock(&session.lock);
    t->own = (void *)(uintptr_t)(at + 1);
    snprintf(t->source, sizeof t->source, "CUPTI activity records (API %u)", session.version);
  }
  pthread_mutex_unlock(&opening);
  return status;
}

static uint16_t number_of(const hn_trace *t) { return (uint16_t)(uintptr_t)t->own; }

static uint64_t pack(const hn_trace *t, uint32_t lane, hn_cuda_mark m) {
  return (uint64_t)number_of(t) << 48 | (uint64_t)lane << 40 | (uint64_t)m.kind << 32 | (uint32_t)m.step;
}

static hone_status capture_mark(hn_trace *t, uint32_t lane, hn_cuda_mark before, hn_cuda_mark now,
                                hone_error *error) {
  uint64_t last;
  hone_status status = HONE_OK;
  if (hn_cuda_marked(before))
    session.cu.cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
  current.trace = hn_cuda_marked(now) ? number_of(t) : 0;
  current.lane = (uint8_t)lane;
  current.mark = now;
  if (hn_cuda_marked(now))
    status = CU(error, cuptiActivityPushExternalCorrelationId, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                pack(t, lane, now));
  return status;
}

static hone_status nothing(hn_trace *t, hone_error *error) {
  (void)t, (void)error;
  return HONE_OK;
}

static int by_correlation(const void *pa, const void *pb) {
  const external *a = pa, *b = pb;
  return a->correlation < b->correlation ? -1 : a->correlation > b->correlation;
}

/* Lane of a stream among a trace's; -1: it is none of its. */
static int lane_of(const hn_trace *t, uint32_t stream) {
  for (int i = 0; i < HN_LANES; i++) {
    uint32_t id = 0;
    if (t->queue->lane[i].stream &&
        session.cu.cuptiGetStreamIdEx(t->device->context, t->queue->lane[i].stream, 0, &id) ==
            CUPTI_SUCCESS &&
        id == stream)
      return i;
  }
  return -1;
}

/* Gives a record to its trace; records of work that nobody traces are dropped. */
static void deliver(const activity *a, clock_pair now) {
  uint16_t number = 0;
  int lane = 0;
  hn_cuda_mark mark = {HONE_SPAN_KIND_COUNT, -1};
  const node *n = a->node ? node_place(a->node) : NULL;
  external key = {.correlation = a->correlation};
  const external *e = (n && n->trace) || !session.externals.len
                          ? NULL
                          : bsearch(&key, session.externals.ptr, session.externals.len,
                                    sizeof *session.externals.ptr, by_correlation);
  if (n && n->trace) {
    number = n->trace;
    lane = n->lane;
    mark = n->mark;
  } else if (e) {
    number = (uint16_t)(e->id >> 48);
    lane = (int)(e->id >> 40 & 0xff);
    mark = (hn_cuda_mark){(hone_span_kind)(e->id >> 32 & 0xff), (int32_t)(uint32_t)e->id};
  } else {
    for (uint16_t i = 0; i < MOST_TRACES && !number; i++)
      if (session.trace[i] && (lane = lane_of(session.trace[i], a->stream)) >= 0) number = (uint16_t)(i + 1);
  }
  hn_trace *t = number && number <= MOST_TRACES ? session.trace[number - 1] : NULL;
  if (!t) return;
  /* The mark tells a reformat from other kernels; whatever a copy is marked as, it is a copy. */
  const hone_span_kind kind = a->kind == HONE_SPAN_KERNEL && hn_cuda_marked(mark) ? mark.kind : a->kind;
  hn_cuda_trace_add(t, (hone_span_record){.start_ns = host_time(session.first, now, a->start),
                                          .end_ns = host_time(session.first, now, a->end),
                                          .name = hn_cuda_trace_name(t, a->name),
                                          .bytes = a->bytes,
                                          .step = mark.step,
                                          .lane = (int16_t)(1 + lane),
                                          .kind = (uint8_t)kind});
}

static hone_status capture_collect(hn_trace *t, hone_error *error) {
  hone_status status = hn_cuda_sync(t->device, t->queue, error);
  if (status == HONE_OK) status = CU(error, cuptiActivityFlushAll, 0);
  if (status != HONE_OK) return status;
  const clock_pair now = read_clocks();
  pthread_mutex_lock(&session.lock);
  if (session.externals.len)
    qsort(session.externals.ptr, session.externals.len, sizeof *session.externals.ptr, by_correlation);
  for (size_t i = 0; i < session.waiting.len; i++) deliver(&session.waiting.ptr[i], now);
  session.waiting.len = session.externals.len = 0;
  t->lost += session.lost;
  session.lost = 0;
  pthread_mutex_unlock(&session.lock);
  return HONE_OK;
}

static void capture_close(hn_trace *t) {
  pthread_mutex_lock(&opening);
  pthread_mutex_lock(&session.lock);
  const uint16_t number = number_of(t);
  if (number) session.trace[number - 1] = NULL;
  if (current.trace == number) current.trace = 0;
  pthread_mutex_unlock(&session.lock);
  if (--session.open == 0) {
    session.cu.cuptiActivityFlushAll(0);
    session_end();
    pthread_mutex_lock(&session.lock);
    session_forget();
    pthread_mutex_unlock(&session.lock);
  }
  pthread_mutex_unlock(&opening);
}

const hn_cuda_capture hn_cuda_capture_cupti = {.open = capture_open,
                                               .mark = capture_mark,
                                               .begin_run = nothing,
                                               .end_run = nothing,
                                               .collect = capture_collect,
                                               .close = capture_close};
#endif
