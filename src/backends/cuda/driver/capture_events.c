/* Traces from CUDA events: one before and one after everything that is marked. They cost a microsecond or two
 * of the device each, so this is for where CUPTI is refused. */
#include "backends/cuda/driver/queue.h"
#include "backends/cuda/driver/trace.h"
#include "base/error.h"
#include "base/os.h"

#include <stdio.h>

typedef struct pair {
  hn_event *from, *to;
  hn_cuda_mark mark;
  uint32_t lane;
  bool recorded; /* both ends */
} pair;

typedef struct own {
  hn_event *base; /* recorded when a run begins, at `at` of the host's clock */
  int64_t at;
  HN_VEC(pair) captured; /* in segments: recorded again by every launch */
  HN_VEC(pair) loose;    /* of the run in progress; the events are used again by the next */
  size_t n_loose;
} own;

static hone_status events_open(hn_trace *t, hone_error *error) {
  own *o = hn_calloc(1, sizeof *o);
  if (!o) return hn_fail_memory(error, sizeof *o, "a trace");
  hone_status status = hn_cuda_event_open(t->device, &o->base, error);
  if (status != HONE_OK) {
    hn_free(o);
    return status;
  }
  t->own = o;
  snprintf(t->source, sizeof t->source, "CUDA events around each step");
  return HONE_OK;
}

static void free_pairs(hn_device *d, pair *p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    hn_cuda_event_close(d, p[i].from);
    hn_cuda_event_close(d, p[i].to);
  }
}

static void events_close(hn_trace *t) {
  own *o = t->own;
  if (!o) return;
  free_pairs(t->device, o->captured.ptr, o->captured.len);
  free_pairs(t->device, o->loose.ptr, o->loose.len);
  hn_vec_free(&o->captured);
  hn_vec_free(&o->loose);
  hn_cuda_event_close(t->device, o->base);
  hn_free(o);
  t->own = NULL;
}

/* A pair with both events, in the list that fits. */
static hone_status begin(hn_trace *t, uint32_t lane, hn_cuda_mark mark, hone_error *error) {
  own *o = t->own;
  pair *p = NULL;
  const bool captured = t->queue->capturing;
  if (!captured && o->n_loose < o->loose.len) {
    p = &o->loose.ptr[o->n_loose];
  } else {
    pair fresh = {0};
    hone_status status = hn_cuda_event_open(t->device, &fresh.from, error);
    if (status == HONE_OK) status = hn_cuda_event_open(t->device, &fresh.to, error);
    bool kept = false;
    if (status == HONE_OK) kept = captured ? hn_vec_push(&o->captured, fresh) : hn_vec_push(&o->loose, fresh);
    if (!kept) {
      free_pairs(t->device, &fresh, 1);
      return status == HONE_OK ? hn_fail_memory(error, sizeof fresh, "a trace") : status;
    }
    p = captured ? &o->captured.ptr[o->captured.len - 1] : &o->loose.ptr[o->loose.len - 1];
  }
  if (!captured) o->n_loose++;
  p->mark = mark;
  p->lane = lane;
  p->recorded = false;
  return hn_cuda_event_record(t->device, t->queue, p->from, error);
}

/* The newest pair of the lane that has only begun. */
static pair *unfinished(pair *p, size_t n, uint32_t lane) {
  for (size_t i = n; i-- > 0;)
    if (!p[i].recorded && p[i].lane == lane) return &p[i];
  return NULL;
}

static hone_status events_mark(hn_trace *t, uint32_t lane, hn_cuda_mark before, hn_cuda_mark now,
                               hone_error *error) {
  own *o = t->own;
  hone_status status = HONE_OK;
  if (hn_cuda_marked(before)) {
    pair *p = t->queue->capturing ? unfinished(o->captured.ptr, o->captured.len, lane)
                                  : unfinished(o->loose.ptr, o->n_loose, lane);
    if (p) {
      status = hn_cuda_event_record(t->device, t->queue, p->to, error);
      p->recorded = status == HONE_OK;
    }
  }
  return status == HONE_OK && hn_cuda_marked(now) ? begin(t, lane, now, error) : status;
}

static hone_status events_begin_run(hn_trace *t, hone_error *error) {
  own *o = t->own;
  o->n_loose = 0;
  hone_status status = hn_cuda_event_record(t->device, t->queue, o->base, error);
  o->at = (int64_t)hn_now_ns();
  return status;
}

static hone_status read_pairs(hn_trace *t, const pair *p, size_t n, hone_error *error) {
  const own *o = t->own;
  for (size_t i = 0; i < n; i++) {
    double from = 0, to = 0;
    if (!p[i].recorded) continue;
    hone_status status = hn_cuda_event_seconds(t->device, o->base, p[i].from, &from, error);
    if (status == HONE_OK) status = hn_cuda_event_seconds(t->device, o->base, p[i].to, &to, error);
    if (status != HONE_OK) return status;
    if (from < 0 || to < from) continue; /* of an earlier run: its segment was not launched in this one */
    hn_cuda_trace_add(t, (hone_span_record){.start_ns = o->at + (int64_t)(from * 1e9),
                                            .end_ns = o->at + (int64_t)(to * 1e9),
                                            .step = p[i].mark.step,
                                            .lane = (int16_t)(1 + p[i].lane),
                                            .kind = (uint8_t)p[i].mark.kind});
  }
  return HONE_OK;
}

static hone_status events_end_run(hn_trace *t, hone_error *error) {
  const own *o = t->own;
  hone_status status = read_pairs(t, o->captured.ptr, o->captured.len, error);
  return status == HONE_OK ? read_pairs(t, o->loose.ptr, o->n_loose, error) : status;
}

static hone_status events_collect(hn_trace *t, hone_error *error) {
  (void)t, (void)error;
  return HONE_OK;
}

const hn_cuda_capture hn_cuda_capture_events = {.open = events_open,
                                                .mark = events_mark,
                                                .begin_run = events_begin_run,
                                                .end_run = events_end_run,
                                                .collect = events_collect,
                                                .close = events_close};
