#include "insight/import/common/runlog.h"

#include "base/error.h"

#include <stdlib.h>

enum { LOOK_BACK = 64 }; /* runs at once that are told apart */

void hn_runlog_add(hn_runlog *t, const hone_span *span) {
  const hn_runlog_span row = {.start_ns = span->start_ns,
                              .end_ns = span->end_ns,
                              .name = span->name,
                              .op_type = span->op_type,
                              .lane = span->lane,
                              .iteration = span->iteration,
                              .step = span->step,
                              .launch = span->launch,
                              .kind = (uint8_t)span->kind};
  if (!hn_vec_push(&t->spans, row)) t->failed = true;
}

void hn_runlog_add_run(hn_runlog *t, int32_t lane, int64_t start_ns, int64_t end_ns) {
  hone_span run = {
      .kind = HONE_SPAN_RUN, .lane = lane, .start_ns = start_ns, .end_ns = end_ns, .step = -1, .name = "run"};
  if (!hn_vec_push(&t->runs, run)) t->failed = true;
}

/* The outer one first. */
static int by_time(int64_t start_a, int64_t end_a, int64_t start_b, int64_t end_b) {
  if (start_a != start_b) return start_a < start_b ? -1 : 1;
  return end_a > end_b ? -1 : end_a < end_b;
}

static int by_start(const void *pa, const void *pb) {
  const hone_span *a = pa, *b = pb;
  const int order = by_time(a->start_ns, a->end_ns, b->start_ns, b->end_ns);
  return order ? order : a->lane < b->lane ? -1 : a->lane > b->lane;
}

static int by_place(const void *pa, const void *pb) {
  const hn_runlog_span *a = pa, *b = pb;
  if (a->iteration != b->iteration) return a->iteration < b->iteration ? -1 : 1;
  if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
  return by_time(a->start_ns, a->end_ns, b->start_ns, b->end_ns);
}

/* Index of the run that a span belongs to, -1: none. Its start decides: its end may be blurred. */
static int32_t run_of(const hn_runlog *t, const hn_runlog_span *span) {
  size_t low = 0, high = t->runs.len; /* the first run that starts behind the span */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (t->runs.ptr[middle].start_ns <= span->start_ns)
      low = middle + 1;
    else
      high = middle;
  }
  int32_t found = -1;
  for (size_t i = low, looked = 0; i-- > 0 && looked < LOOK_BACK; looked++) {
    const hone_span *run = &t->runs.ptr[i];
    if (span->start_ns > run->end_ns || (span->start_ns == run->end_ns && span->end_ns > run->end_ns))
      continue;
    if (run->lane == span->lane) return (int32_t)i;
    if (found < 0) found = (int32_t)i;
  }
  return found;
}

/* On a lane spans nest or follow each other. What crosses by no more than the blur of the stamps is cut. */
static void straighten(hn_runlog_span *spans, size_t n, int64_t blur) {
  for (size_t i = 0; i + 1 < n; i++) {
    hn_runlog_span *a = &spans[i];
    for (size_t k = i + 1; k < n && k < i + 8; k++) {
      hn_runlog_span *b = &spans[k];
      if (b->lane != a->lane || b->iteration != a->iteration || b->start_ns >= a->end_ns) break;
      const int64_t over = b->end_ns - a->end_ns;
      if (over <= 0) continue;
      if (a->end_ns - b->start_ns <= blur) /* one after the other */
        a->end_ns = b->start_ns;
      else if (over <= blur) /* one inside the other */
        b->end_ns = a->end_ns;
    }
  }
}

hone_status hn_runlog_finish(hn_runlog *t, int64_t blur_ns, hone_facts *facts, hone_error *error) {
  if (t->failed) return hn_fail_memory(error, t->spans.len * sizeof *t->spans.ptr, "a timeline");
  if (t->runs.len) qsort(t->runs.ptr, t->runs.len, sizeof *t->runs.ptr, by_start);
  for (size_t i = 0; i < t->spans.len; i++) {
    hn_runlog_span *s = &t->spans.ptr[i];
    if (s->iteration == HN_RUNLOG_ASK) s->iteration = t->runs.len ? run_of(t, s) : 0;
  }
  if (t->spans.len) {
    qsort(t->spans.ptr, t->spans.len, sizeof *t->spans.ptr, by_place);
    straighten(t->spans.ptr, t->spans.len, blur_ns);
  }
  for (size_t i = 0; i < t->spans.len; i++) {
    const hn_runlog_span *s = &t->spans.ptr[i];
    if (s->iteration < 0 || (size_t)s->iteration >= t->runs.len) continue;
    hone_span *run = &t->runs.ptr[s->iteration];
    if (s->start_ns < run->start_ns) run->start_ns = s->start_ns;
    if (s->end_ns > run->end_ns) run->end_ns = s->end_ns;
  }
  for (size_t i = 0; i < t->runs.len; i++) {
    t->runs.ptr[i].iteration = (int32_t)i;
    hone_facts_add_span(facts, &t->runs.ptr[i]);
  }
  for (size_t i = 0; i < t->spans.len; i++) {
    const hn_runlog_span *s = &t->spans.ptr[i];
    const bool inside = s->iteration >= 0 && (size_t)s->iteration < t->runs.len;
    hone_facts_add_span(facts,
                        &(hone_span){.parent = inside ? (uint32_t)s->iteration + 1 : 0, /* added first */
                                     .start_ns = s->start_ns,
                                     .end_ns = s->end_ns,
                                     .kind = (hone_span_kind)s->kind,
                                     .lane = s->lane,
                                     .iteration = s->iteration,
                                     .step = s->step,
                                     .name = s->name,
                                     .op_type = s->op_type,
                                     .launch = s->launch});
  }
  return HONE_OK;
}

void hn_runlog_free(hn_runlog *t) {
  hn_vec_free(&t->spans);
  hn_vec_free(&t->runs);
}
