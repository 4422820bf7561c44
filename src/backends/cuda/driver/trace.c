#include "backends/cuda/driver/trace.h"

#include "base/error.h"
#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hn_cuda_trace_add(hn_trace *t, hone_span_record span) {
  pthread_mutex_lock(&t->lock);
  const bool ok = hn_vec_push(&t->spans, span);
  if (!ok) t->lost++;
  pthread_mutex_unlock(&t->lock);
  return ok;
}

const char *hn_cuda_trace_name(hn_trace *t, const char *name) {
  if (!name) return NULL;
  pthread_mutex_lock(&t->lock);
  char *text = hn_map_get(&t->names, name);
  if (!text && (text = hn_arena_strdup(&t->text, name))) hn_map_set(&t->names, text, text);
  pthread_mutex_unlock(&t->lock);
  return text;
}

static void trace_close(hn_trace *t) {
  if (!t) return;
  if (t->by) t->by->close(t);
  if (t->queue) t->queue->traced = false;
  hn_vec_free(&t->runs);
  hn_vec_free(&t->spans);
  hn_map_free(&t->names);
  hn_arena_free(&t->text);
  pthread_mutex_destroy(&t->lock);
  hn_free(t);
}

static hone_status trace_open(hn_device *d, hn_queue *q, hn_trace **out, hone_error *error) {
  *out = NULL;
  hone_status status = hn_cuda_enter(d, error);
  hn_trace *t = status == HONE_OK ? hn_calloc(1, sizeof *t) : NULL;
  if (!t) return status == HONE_OK ? hn_fail_memory(error, sizeof *t, "a trace") : status;
  t->device = d;
  t->queue = q;
  q->traced = true;
  pthread_mutex_init(&t->lock, NULL);
  for (int i = 0; i < HN_LANES; i++) t->now[i] = (hn_cuda_mark){HONE_SPAN_KIND_COUNT, -1};
  const char *wish = getenv("HONE_TRACE"); /* "events": as where CUPTI is refused */
  hone_error refused = {0};
  if (wish && strcmp(wish, "events") == 0)
    snprintf(t->why, sizeof t->why, "HONE_TRACE=events");
  else if (hn_cuda_capture_cupti.open(t, &refused) == HONE_OK)
    t->by = &hn_cuda_capture_cupti;
  else
    snprintf(t->why, sizeof t->why, "%s", refused.what);
  if (!t->by) {
    status = hn_cuda_capture_events.open(t, error);
    if (status == HONE_OK) t->by = &hn_cuda_capture_events;
  }
  if (status == HONE_OK)
    *out = t;
  else
    trace_close(t);
  return status;
}

static hone_status trace_mark(hn_trace *t, hone_span_kind kind, int32_t step, hone_error *error) {
  const uint32_t lane = t->queue->selected;
  const hn_cuda_mark before = t->now[lane], now = {kind, step};
  t->now[lane] = now;
  return t->by->mark(t, lane, before, now, error);
}

static hone_status trace_begin_run(hn_trace *t, hone_error *error) {
  if (!hn_vec_push(&t->runs, (int64_t)hn_now_ns())) return hn_fail_memory(error, sizeof(int64_t), "a trace");
  return t->by->begin_run(t, error);
}

static hone_status trace_end_run(hn_trace *t, hone_error *error) {
  t->closed = (int64_t)hn_now_ns();
  return t->by->end_run(t, error);
}

static int by_start(const void *pa, const void *pb) {
  const hone_span_record *a = pa, *b = pb;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

/* The run in which most of a span lies, told by its middle: the clocks agree to a microsecond, not to none.
 */
static int32_t run_of(const hn_trace *t, const hone_span_record *s) {
  const int64_t middle = s->start_ns + (s->end_ns - s->start_ns) / 2;
  size_t low = 0, high = t->runs.len;
  while (low < high) {
    const size_t k = low + (high - low) / 2;
    if (t->runs.ptr[k] <= middle)
      low = k + 1;
    else
      high = k;
  }
  return low == 0 || (low == t->runs.len && middle > t->closed) ? -1 : (int32_t)low - 1;
}

/* A lane does its work in order. A kernel that was launched early (programmatic dependent launch) waits for
 * the one before it, so its time begins where that one ends. Work that ran within other work of its lane
 * (branches of a library's own) moves to a lane that was free. */
static void separate(hone_span_record *span, size_t n) {
  enum { MOST = 64 };
  int64_t busy[MOST];
  for (int i = 0; i < MOST; i++) busy[i] = INT64_MIN;
  for (size_t i = 0; i < n; i++) {
    int lane = span[i].lane;
    if (lane < 1 || lane >= MOST) lane = 1;
    if (busy[lane] > span[i].start_ns && busy[lane] < span[i].end_ns) span[i].start_ns = busy[lane];
    if (busy[lane] > span[i].start_ns)
      for (int k = MOST - 1; k > HN_LANES; k--)
        if (busy[k] <= span[i].start_ns) {
          lane = k;
          break;
        }
    span[i].lane = (int16_t)lane;
    if (span[i].end_ns > busy[lane]) busy[lane] = span[i].end_ns;
  }
}

static hone_status trace_take(hn_trace *t, const hone_span_record **records, size_t *count, uint64_t *lost,
                              hone_error *error) {
  hone_status status = t->by->collect(t, error);
  if (status != HONE_OK) return status;
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; i < t->spans.len; i++) t->spans.ptr[i].iteration = run_of(t, &t->spans.ptr[i]);
  if (t->spans.len) qsort(t->spans.ptr, t->spans.len, sizeof *t->spans.ptr, by_start);
  separate(t->spans.ptr, t->spans.len);
  *records = t->spans.ptr;
  *count = t->spans.len;
  *lost = t->lost;
  pthread_mutex_unlock(&t->lock);
  return HONE_OK;
}

static const char *trace_source(const hn_trace *t, const char **why_not_better) {
  *why_not_better = t->why[0] ? t->why : NULL;
  return t->source;
}

const hn_tracing hn_cuda_tracing = {.open = trace_open,
                                    .mark = trace_mark,
                                    .begin_run = trace_begin_run,
                                    .end_run = trace_end_run,
                                    .take = trace_take,
                                    .source = trace_source,
                                    .close = trace_close};
