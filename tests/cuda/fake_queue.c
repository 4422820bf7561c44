#include "fake.h"
#include "fake_fail.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

CUresult fake_sticky;
char fake_sticky_text[600];

static fake_stream *streams;
static fake_event *events;
static fake_graph *graphs;
static fake_capture *captures[16];
static uint32_t seed = 2463534242u;
static bool seeded;

static uint32_t draw(uint32_t below) {
  if (!seeded) { /* HONE_FAKE_SEED: another order of everything that has no order */
    const char *text = getenv("HONE_FAKE_SEED");
    seeded = true;
    if (text && *text) seed = (uint32_t)strtoul(text, NULL, 10) * 2654435761u | 1;
  }
  seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
  return below ? seed % below : seed;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define FIND(list, handle)                                                                                   \
  for (__typeof__(list) p = (list); p; p = p->next)                                                          \
    if ((void *)p == (void *)(handle)) return p;                                                             \
  return NULL
fake_stream *fake_stream_of(CUstream handle) { FIND(streams, handle); }
fake_event *fake_event_of(CUevent handle) { FIND(events, handle); }
fake_graph *fake_graph_of(void *handle, bool executable) {
  for (fake_graph *g = graphs; g; g = g->next)
    if (g == handle && g->executable == executable) return g;
  return NULL;
}

#define UNLINK(list, item)                                                                                   \
  for (__typeof__(list) *at = &(list); *at; at = &(*at)->next)                                               \
    if (*at == (item)) {                                                                                     \
      *at = (item)->next;                                                                                    \
      break;                                                                                                 \
    }

static fake_marker *hold(fake_marker *m) {
  if (m) m->references++;
  return m;
}

static void drop(fake_marker *m) {
  if (m && --m->references == 0) free(m);
}

static fake_marker *new_marker(void) {
  fake_marker *m = calloc(1, sizeof *m);
  if (!m) abort();
  m->references = 1;
  return m;
}

static void add_unique(unsigned **list, unsigned *n, unsigned value) {
  for (unsigned i = 0; i < *n; i++)
    if ((*list)[i] == value) return;
  *list = realloc(*list, (*n + 1) * sizeof **list);
  if (!*list) abort();
  (*list)[(*n)++] = value;
}

/* ---------------------------------------------------------------- doing the work */

static void lose(CUresult code, const char *why) {
  const char *quiet = getenv("HONE_FAKE_QUIET");
  if (fake_sticky) return;
  fake_sticky = code;
  snprintf(fake_sticky_text, sizeof fake_sticky_text, "%s", why);
  if (strcmp(quiet ? quiet : "0", "1")) fprintf(stderr, "emulated GPU: %s\n", why);
}

static void trace(const fake_op *op) {
  static int on = -1;
  if (on < 0) on = getenv("HONE_FAKE_TRACE") != NULL;
  if (!on) return;
  if (op->kind == FAKE_LAUNCH)
    fprintf(stderr, "fake: %s grid %u,%u,%u block %u,%u,%u\n", op->launch.entry->name, op->launch.grid.x,
            op->launch.grid.y, op->launch.grid.z, op->launch.block.x, op->launch.block.y, op->launch.block.z);
  else if (op->kind == FAKE_COPY)
    fprintf(stderr, "fake: copy %p to %p, %zu bytes\n", op->from, op->to, op->bytes);
  else if (op->kind == FAKE_SET)
    fprintf(stderr, "fake: set %p, %zu bytes\n", op->to, op->bytes);
}

static void run_graph(const fake_op *op);

static void run_op(const fake_op *op) {
  char why[512];
  if (op->kind == FAKE_RECORD) {
    op->marker->done = true;
    op->marker->time = now();
    return;
  }
  if (op->kind == FAKE_GRAPH) {
    run_graph(op);
    return;
  }
  if (fake_sticky) return; /* the context is lost; only those who wait are still let go */
  trace(op);
  if (op->kind == FAKE_LAUNCH) {
    int code = CUDA_ERROR_ILLEGAL_ADDRESS;
    snprintf(why, sizeof why, "kernel %s: a failure on purpose", op->launch.entry->name);
    if (fake_fails("kernel", &code, why, sizeof why))
      lose((CUresult)code, why);
    else if (!emu_run(&op->launch, draw(0), why, sizeof why))
      lose(strstr(why, "illegal memory") ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_LAUNCH_FAILED, why);
  } else if (op->kind == FAKE_CALL) {
    op->call(op->args);
  } else if (op->kind == FAKE_COPY) {
    memmove(op->to, op->staged ? op->staged : op->from, op->bytes);
  } else if (op->kind == FAKE_SET) {
    for (size_t i = 0; i < op->bytes; i += op->width) memcpy((char *)op->to + i, &op->value, op->width);
  }
}

/* One of the orders that the graph's edges allow. */
static void run_graph(const fake_op *launch) {
  const fake_graph *g = launch->graph;
  bool *done = calloc(g->nodes + 1, sizeof *done);
  if (!done) abort();
  for (unsigned n = 0; n < g->nodes; n++) {
    const unsigned first = draw(g->nodes);
    for (unsigned k = 0; k < g->nodes; k++) {
      const unsigned i = (first + k) % g->nodes;
      const fake_node *node = &g->node[i];
      bool ready = !done[i];
      for (unsigned a = 0; ready && a < node->afters; a++) ready = done[node->after[a]];
      if (!ready) continue;
      done[i] = true;
      fake_op op = node->op;
      if (op.kind == FAKE_RECORD) op.marker = launch->markers[i];
      run_op(&op);
      break;
    }
  }
  free(done);
}

static void free_op(fake_op *op) {
  free(op->args);
  free(op->staged);
  if (op->markers)
    for (unsigned i = 0; i < op->graph->nodes; i++) drop(op->markers[i]);
  free(op->markers);
  drop(op->marker);
  if (op->graph) fake_graph_release(op->graph);
}

static bool can_run(const fake_stream *s) {
  return s->head && !(s->head->kind == FAKE_WAIT && !s->head->marker->done);
}

/* Does one operation of a stream drawn among those that can go on; false: none can. */
static bool step(void) {
  unsigned ready = 0;
  for (const fake_stream *s = streams; s; s = s->next) ready += can_run(s);
  if (!ready) return false;
  unsigned pick = draw(ready);
  fake_stream *s = streams;
  while (!can_run(s) || pick--) s = s->next;
  fake_op *op = s->head;
  s->head = op->next;
  if (!s->head) s->tail = NULL;
  run_op(op);
  free_op(op);
  free(op);
  return true;
}

static bool is_done(const fake_stream *s, const fake_marker *m) {
  if (s) return !s->head;
  if (m) return m->done;
  for (s = streams; s; s = s->next)
    if (s->head) return false;
  return true;
}

/* Until the stream is empty, the marker passed, or (both NULL) everything done. */
static CUresult run_until(const fake_stream *s, const fake_marker *m, unsigned most) {
  char why[512];
  if (is_done(s, m)) return fake_sticky;
  fake_unlock_memory();
  while (most-- && !is_done(s, m) && step()) {
  }
  if (!fake_lock_memory(why, sizeof why)) lose(CUDA_ERROR_ILLEGAL_ADDRESS, why);
  return fake_sticky;
}

/* ---------------------------------------------------------------- streams and events */

CUresult fake_stream_new(unsigned flags, CUstream *out) {
  fake_stream *s = calloc(1, sizeof *s);
  if (!s) return CUDA_ERROR_OUT_OF_MEMORY;
  s->flags = flags;
  s->next = streams;
  streams = s;
  *out = (CUstream)s;
  return CUDA_SUCCESS;
}

CUresult fake_stream_delete(fake_stream *s) {
  run_until(s, NULL, ~0u);
  UNLINK(streams, s);
  free(s->after);
  free(s);
  return fake_sticky;
}

CUresult fake_event_new(unsigned flags, CUevent *out) {
  fake_event *e = calloc(1, sizeof *e);
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  e->flags = flags;
  e->next = events;
  events = e;
  *out = (CUevent)e;
  return CUDA_SUCCESS;
}

CUresult fake_event_delete(fake_event *e) {
  UNLINK(events, e);
  drop(e->marker);
  free(e->after);
  free(e);
  return CUDA_SUCCESS;
}

static void push(fake_stream *s, const fake_op *op) {
  fake_op *copy = malloc(sizeof *copy);
  if (!copy) abort();
  *copy = *op;
  copy->next = NULL;
  if (s->tail)
    s->tail->next = copy;
  else
    s->head = copy;
  s->tail = copy;
}

static unsigned add_node(fake_stream *s, const fake_op *op) {
  fake_graph *g = s->capture->graph;
  g->node = realloc(g->node, (g->nodes + 1) * sizeof *g->node);
  if (!g->node) abort();
  g->node[g->nodes] = (fake_node){*op, s->after, s->afters};
  s->after = NULL, s->afters = 0;
  add_unique(&s->after, &s->afters, g->nodes);
  return g->nodes++;
}

CUresult fake_submit(fake_stream *s, const fake_op *op) {
  if (s->capture && s->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  s->early = op->kind == FAKE_LAUNCH;
  if (s->capture) {
    fake_op node = *op;
    free(node.staged); /* captured copies read when they run */
    node.staged = NULL;
    add_node(s, &node);
    return CUDA_SUCCESS;
  }
  if (op->kind == FAKE_GRAPH) {
    fake_op launch = *op;
    op->graph->references++;
    launch.markers = calloc(op->graph->nodes + 1, sizeof *launch.markers);
    if (!launch.markers) abort();
    for (unsigned i = 0; i < op->graph->nodes; i++) {
      const fake_op *o = &op->graph->node[i].op;
      if (o->kind != FAKE_RECORD || !fake_event_of((CUevent)o->event)) continue;
      drop(o->event->marker);
      o->event->marker = new_marker();
      launch.markers[i] = hold(o->event->marker);
    }
    for (unsigned i = 0; i < op->graph->nodes; i++)
      if (op->graph->node[i].op.kind == FAKE_RECORD && !launch.markers[i]) launch.markers[i] = new_marker();
    push(s, &launch);
  } else {
    push(s, op);
  }
  return CUDA_SUCCESS;
}

CUresult fake_record(fake_stream *s, fake_event *e, bool external) {
  if (s->capture && s->capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (external) {
    if (!s->capture) return CUDA_ERROR_ILLEGAL_STATE;
    add_node(s, &(fake_op){.kind = FAKE_RECORD, .event = e});
    return CUDA_SUCCESS;
  }
  free(e->after);
  e->after = NULL, e->afters = 0;
  e->capture = s->capture;
  if (s->capture) {
    for (unsigned i = 0; i < s->afters; i++) add_unique(&e->after, &e->afters, s->after[i]);
    return CUDA_SUCCESS;
  }
  drop(e->marker);
  e->marker = new_marker();
  push(s, &(fake_op){.kind = FAKE_RECORD, .marker = hold(e->marker)});
  return CUDA_SUCCESS;
}

CUresult fake_wait(fake_stream *s, fake_event *e) {
  if (e->capture) {
    if (s->capture && s->capture != e->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    if (!s->capture && s->head) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    s->capture = e->capture;
    for (unsigned i = 0; i < e->afters; i++) add_unique(&s->after, &s->afters, e->after[i]);
    return CUDA_SUCCESS;
  }
  if (s->capture) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  if (e->marker && !e->marker->done) push(s, &(fake_op){.kind = FAKE_WAIT, .marker = hold(e->marker)});
  return CUDA_SUCCESS;
}

static CUresult refuse(const fake_stream *s) {
  if (!s || !s->capture) return CUDA_SUCCESS;
  s->capture->broken = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult fake_sync_stream(fake_stream *s) {
  const CUresult r = refuse(s);
  return r ? r : run_until(s, NULL, ~0u);
}

CUresult fake_query_stream(fake_stream *s) {
  const CUresult r = refuse(s);
  if (r) return r;
  const CUresult fault = run_until(s, NULL, 1);
  return fault ? fault : s->head ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult fake_sync_event(fake_event *e) {
  if (e->capture) return CUDA_ERROR_CAPTURED_EVENT;
  return e->marker ? run_until(NULL, e->marker, ~0u) : fake_sticky;
}

CUresult fake_query_event(fake_event *e) {
  if (e->capture) return CUDA_ERROR_CAPTURED_EVENT;
  if (!e->marker) return fake_sticky;
  const CUresult fault = run_until(NULL, e->marker, 1);
  return fault ? fault : e->marker->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult fake_sync_all(void) {
  for (const fake_stream *s = streams; s; s = s->next)
    if (s->capture) return refuse(s);
  return run_until(NULL, NULL, ~0u);
}

/* ---------------------------------------------------------------- capture and graphs */

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void fake_exchange_mode(CUstreamCaptureMode *mode) {
  const CUstreamCaptureMode was = thread_mode;
  thread_mode = *mode;
  *mode = was;
}

CUresult fake_refuse_in_capture(void) {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  for (size_t i = 0; i < sizeof captures / sizeof *captures; i++) {
    fake_capture *c = captures[i];
    if (!c || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    if (c->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && c->thread != (unsigned long)pthread_self())
      continue;
    c->broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult fake_capture_begin(fake_stream *s, CUstreamCaptureMode mode) {
  if (s->capture) return CUDA_ERROR_ILLEGAL_STATE;
  size_t at = 0;
  while (at < sizeof captures / sizeof *captures && captures[at]) at++;
  if (at == sizeof captures / sizeof *captures) return CUDA_ERROR_NOT_SUPPORTED;
  fake_capture *c = calloc(1, sizeof *c);
  fake_graph *g = calloc(1, sizeof *g);
  if (!c || !g) abort();
  *c = (fake_capture){.origin = s, .graph = g, .mode = mode, .thread = (unsigned long)pthread_self()};
  g->references = 1;
  captures[at] = c;
  s->capture = c;
  return CUDA_SUCCESS;
}

/* Whether every node comes before one of the origin's last ones. */
static bool is_joined(const fake_capture *c) {
  const fake_graph *g = c->graph;
  bool *seen = calloc(g->nodes + 1, sizeof *seen), all = true;
  if (!seen) abort();
  for (unsigned i = 0; i < c->origin->afters; i++) seen[c->origin->after[i]] = true;
  for (unsigned i = g->nodes; i-- > 0;) { /* a node's predecessors are older */
    all = all && seen[i];
    for (unsigned a = 0; seen[i] && a < g->node[i].afters; a++) seen[g->node[i].after[a]] = true;
  }
  free(seen);
  return all;
}

CUresult fake_capture_end(fake_stream *s, CUgraph *out) {
  fake_capture *c = s->capture;
  *out = NULL;
  if (!c) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->origin != s) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != (unsigned long)pthread_self())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const CUresult result = c->broken       ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : !is_joined(c) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                          : CUDA_SUCCESS;
  for (fake_stream *p = streams; p; p = p->next)
    if (p->capture == c) {
      p->capture = NULL;
      free(p->after);
      p->after = NULL, p->afters = 0;
    }
  for (fake_event *e = events; e; e = e->next)
    if (e->capture == c) e->capture = NULL;
  for (size_t i = 0; i < sizeof captures / sizeof *captures; i++)
    if (captures[i] == c) captures[i] = NULL;
  fake_graph *g = c->graph;
  free(c);
  g->next = graphs;
  graphs = g;
  if (result)
    fake_graph_release(g);
  else
    *out = (CUgraph)g;
  return result;
}

/* A graph does not change once its capture has ended, so an executable one may share its nodes. */
CUresult fake_instantiate(fake_graph *g, CUgraphExec *out) {
  fake_graph *e = calloc(1, sizeof *e);
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  *e = (fake_graph){.next = graphs, .references = 1, .executable = true, .nodes = g->nodes};
  e->node = calloc(g->nodes + 1, sizeof *e->node);
  if (!e->node) abort();
  for (unsigned i = 0; i < g->nodes; i++) {
    const fake_node *from = &g->node[i];
    fake_node *to = &e->node[i];
    *to = *from;
    to->after = NULL, to->afters = 0;
    for (unsigned a = 0; a < from->afters; a++) add_unique(&to->after, &to->afters, from->after[a]);
    if (!from->op.args) continue;
    const size_t size = from->op.kind == FAKE_CALL ? from->op.bytes : from->op.launch.entry->size;
    to->op.args = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
    if (!to->op.args) abort();
    memcpy(to->op.args, from->op.args, size);
    to->op.launch.args = to->op.args;
  }
  graphs = e;
  *out = (CUgraphExec)e;
  return CUDA_SUCCESS;
}

void fake_graph_release(fake_graph *g) {
  if (--g->references) return;
  UNLINK(graphs, g);
  for (unsigned i = 0; i < g->nodes; i++) {
    free_op(&g->node[i].op);
    free(g->node[i].after);
  }
  free(g->node);
  free(g);
}

void fake_forget_all(void) {
  run_until(NULL, NULL, ~0u);
  fake_sticky = CUDA_SUCCESS;
  fake_sticky_text[0] = 0;
}
