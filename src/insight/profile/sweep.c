#include "insight/profile/sweep.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* Smaller hides larger. */
enum { CLASS_COMPUTE, CLASS_REFORMAT, CLASS_COPY, CLASS_STAGE, CLASS_HOST, CLASS_SYNC, CLASS_IDLE, CLASSES };

static int class_of(hone_span_kind kind) {
  switch (kind) {
  case HONE_SPAN_KERNEL: return CLASS_COMPUTE;
  case HONE_SPAN_REFORMAT: return CLASS_REFORMAT;
  case HONE_SPAN_COPY:
  case HONE_SPAN_COPY_H2D:
  case HONE_SPAN_COPY_D2H: return CLASS_COPY;
  case HONE_SPAN_PRE:
  case HONE_SPAN_POST: return CLASS_STAGE;
  case HONE_SPAN_HOST: return CLASS_HOST;
  case HONE_SPAN_SYNC: return CLASS_SYNC;
  default: return CLASS_IDLE;
  }
}

typedef struct event {
  int64_t time;
  int64_t other_end; /* the interval's other end, to nest spans that start together */
  uint32_t item;
  bool is_start;
} event;

/* A span while it is swept. Active spans of a lane form a stack, linked so that one in the middle can leave.
 */
typedef struct item {
  uint32_t lane; /* dense number */
  uint32_t above, below;
  int class;
  double mark; /* its class's clock when it became the top of its lane */
} item;

typedef struct sweeper {
  item *items;
  uint32_t *tops;         /* per lane: the innermost active span */
  size_t owners[CLASSES]; /* lanes whose top is of that class */
  /* A clock per class: it advances by dt/owners while the class owns the wall. A span's share is then the
   * difference of two readings, so an event costs the same however many lanes are busy. */
  double clock[CLASSES];
  double *exclusive;
} sweeper;

static int by_time(const void *pa, const void *pb) {
  const event *a = pa, *b = pb;
  if (a->time != b->time) return a->time < b->time ? -1 : 1;
  if (a->is_start != b->is_start) return a->is_start ? 1 : -1; /* leave before entering */
  if (a->is_start && a->other_end != b->other_end)
    return a->other_end > b->other_end ? -1 : 1; /* outer first */
  return a->item < b->item ? -1 : a->item > b->item;
}

static int by_value(const void *pa, const void *pb) {
  int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
  return a < b ? -1 : a > b;
}

static void become_top(sweeper *s, uint32_t i) {
  s->items[i].mark = s->clock[s->items[i].class];
  s->owners[s->items[i].class]++;
}

static void leave_top(sweeper *s, uint32_t i) {
  s->exclusive[i] += s->clock[s->items[i].class] - s->items[i].mark;
  s->owners[s->items[i].class]--;
}

static void enter(sweeper *s, uint32_t i) {
  item *it = &s->items[i];
  it->below = s->tops[it->lane];
  it->above = NONE;
  if (it->below != NONE) {
    if (!HN_FAULT("sweep_outer_keeps_time")) leave_top(s, it->below);
    s->items[it->below].above = i;
  }
  s->tops[it->lane] = i;
  become_top(s, i);
}

static void leave(sweeper *s, uint32_t i) {
  item *it = &s->items[i];
  if (it->below != NONE) s->items[it->below].above = it->above;
  if (it->above != NONE) {
    s->items[it->above].below = it->below;
    return;
  }
  leave_top(s, i);
  s->tops[it->lane] = it->below;
  if (it->below != NONE) become_top(s, it->below);
}

/* Gives the time since the last event to the most useful busy class. Returns false when nobody is busy. */
static bool advance(sweeper *s, double dt) {
  for (int c = 0; c < CLASSES; c++)
    if (s->owners[c]) {
      s->clock[c] += HN_FAULT("sweep_owners_do_not_share") ? dt : dt / (double)s->owners[c];
      return true;
    }
  return false;
}

static size_t fill_events(const hone_span *const *spans, size_t count, int64_t low, int64_t high,
                          event *events) {
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    int64_t start = spans[i]->start_ns > low ? spans[i]->start_ns : low;
    int64_t end = spans[i]->end_ns < high ? spans[i]->end_ns : high;
    if (spans[i]->kind == HONE_SPAN_RUN || start >= end) continue;
    events[n++] = (event){start, end, (uint32_t)i, true};
    events[n++] = (event){end, start, (uint32_t)i, false};
  }
  qsort(events, n, sizeof *events, by_time);
  return n;
}

/* Numbers the lanes that occur 0, 1, ...; returns how many. */
static size_t number_lanes(const hone_span *const *spans, size_t count, int32_t *lanes, item *items) {
  for (size_t i = 0; i < count; i++) lanes[i] = spans[i]->lane;
  qsort(lanes, count, sizeof *lanes, by_value);
  size_t n = 0;
  for (size_t i = 0; i < count; i++)
    if (!n || lanes[n - 1] != lanes[i]) lanes[n++] = lanes[i];
  for (size_t i = 0; i < count; i++) {
    const int32_t *found = bsearch(&spans[i]->lane, lanes, n, sizeof *lanes, by_value);
    items[i].lane = (uint32_t)(found - lanes);
    items[i].class = class_of(spans[i]->kind);
  }
  return n;
}

hone_status hn_sweep_run(const hone_span *const *spans, size_t count, int64_t low, int64_t high,
                         double *exclusive, hn_sweep *result, hone_error *error) {
  *result = (hn_sweep){0};
  memset(exclusive, 0, count * sizeof *exclusive);
  hone_status status = HONE_OK;
  sweeper s = {.items = hn_calloc(count, sizeof *s.items), .exclusive = exclusive};
  event *events = hn_calloc(count, 2 * sizeof *events);
  int32_t *lanes = hn_calloc(count, sizeof *lanes);
  s.tops = hn_calloc(count, sizeof *s.tops);
  if (!s.items || !events || !lanes || !s.tops || count >= NONE / 2) {
    status = hn_fail_memory(error, count * sizeof *events, "sweeping the spans");
    goto done;
  }
  size_t lane_count = number_lanes(spans, count, lanes, s.items);
  for (size_t i = 0; i < lane_count; i++) s.tops[i] = NONE;
  size_t n = fill_events(spans, count, low, high, events);
  int64_t now = low, busy_until = low; /* the last instant at which some span was active */
  for (size_t i = 0; i <= n; i++) {
    int64_t next = i < n ? events[i].time : HN_FAULT("sweep_window") ? now : high;
    if (next > now) {
      if (advance(&s, (double)(next - now)))
        busy_until = next;
      else if (!HN_FAULT("sweep_first_gap") || now > low)
        result->gaps += (double)(next - now);
      now = next;
    }
    if ((i == n || events[i].is_start) && (double)(now - busy_until) > result->longest_gap) {
      result->longest_gap = (double)(now - busy_until);
      result->after_longest_gap = i < n ? spans[events[i].item] : NULL;
    }
    if (i == n) break;
    if (events[i].is_start)
      enter(&s, events[i].item);
    else
      leave(&s, events[i].item);
  }
  for (size_t i = 0; i < count; i++) result->covered += exclusive[i];
done:
  hn_free(s.items);
  hn_free(s.tops);
  hn_free(events);
  hn_free(lanes);
  return status;
}
