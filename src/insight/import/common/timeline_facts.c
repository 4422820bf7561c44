/* A joined trace as facts: lanes, steps, spans, counters. */
#include "insight/import/common/timeline_store.h"

#include "base/error.h"
#include "insight/import/common/ops.h"
#include "insight/import/common/optype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NOT_ASKED = 0xff };

enum {
  IDLE_HOST_SPANS_MOST = 1 << 17, /* host events outside the iterations, for the time line only */
  SUBLANES_MOST = 32,
  KEY_LENGTH_MOST = 8192 + 512
};

/* Whose time the iterations consist of. */
typedef enum figure { OF_DEVICE, OF_OPS, OF_CALLS } figure;

/* Events of one lane that overlap lie on several: at most one of a device lane's at a time. */
typedef struct sublane {
  int32_t next; /* of the same lane, -1: none */
  int32_t number;
  int64_t busy_until;
} sublane;

#define OUTSIDE_SHARE 0.05 /* of the time of all work: worth a note */

typedef struct writer {
  hn_timeline *t;
  hn_import *in;
  figure figure;
  HN_VEC(sublane) sublanes;
  /* By lane, twice: the first sublane (-1: none) for work, and for what waits, which overlaps what it waits
   * for. */
  int32_t *first_sublane;
  int32_t lane_count;
  uint32_t *run_spans; /* ids of the RUN spans, by window */
  int32_t *step_of;    /* by name: the name's last step, with the operator it was for */
  int32_t *step_op;
  int32_t *first_op;     /* by name: the operator of the step that has the bare name */
  int32_t *node_of;      /* by name of an operator or range: its node */
  uint8_t *stages;       /* by name: stage_kind of it, NOT_ASKED at first */
  bool *waits_on_device; /* by host event: a device event tells of this call's waiting */
  int64_t host_horizon;  /* host events outside iterations are left out from here on */
  uint64_t put_count[2]; /* events that the figures are about: outside of all iterations, inside of one */
  double put_ns[2];
} writer;

static hone_status no_memory(hone_error *error) { return hn_fail_memory(error, 0, "the facts of a trace"); }

static const char *name_of(const writer *w, uint32_t name) { return w->t->names.ptr[name]; }

/* ---- lanes ---- */

static int32_t open_lane(writer *w, uint32_t lane, bool waiting, unsigned copy) {
  const hn_timeline_stored_lane *l = lane < w->t->lanes.len ? &w->t->lanes.ptr[lane] : NULL;
  char name[320];
  int n = snprintf(name, sizeof name, "%.256s",
                   l && l->name     ? l->name
                   : l && l->device ? "stream"
                                    : "thread");
  if (waiting) n += snprintf(name + n, sizeof name - (size_t)n, ", waiting");
  if (copy) snprintf(name + n, sizeof name - (size_t)n, " (%u)", copy + 1);
  hone_facts_name_lane(w->in->facts, w->lane_count, name);
  return w->lane_count++;
}

/* A lane on which nothing else happens from start to end. */
static bool free_lane(writer *w, const hn_timeline_event *e, bool waiting, int32_t *number) {
  unsigned copies = 0;
  int32_t *link = &w->first_sublane[2 * e->lane + waiting], last = -1;
  for (; *link >= 0; link = &w->sublanes.ptr[last].next) {
    last = *link;
    copies++;
    if (w->sublanes.ptr[last].busy_until <= e->start || copies == SUBLANES_MOST) break;
  }
  if (*link < 0) { /* none is free */
    sublane fresh = {-1, open_lane(w, e->lane, waiting, copies), INT64_MIN};
    if (!hn_vec_push(&w->sublanes, fresh)) return false;
    int32_t added = (int32_t)w->sublanes.len - 1;
    if (last >= 0)
      w->sublanes.ptr[last].next = added;
    else
      w->first_sublane[2 * e->lane + waiting] = added;
    last = added;
  }
  sublane *taken = &w->sublanes.ptr[last];
  if (e->end > taken->busy_until) taken->busy_until = e->end;
  *number = taken->number;
  return true;
}

/* ---- steps ---- */

/* Of a framework's operator, or of a range that is called like ONNX nodes ("Conv_0 + Relu_1"): the one that
 * decides what it costs. */
static const char *type_of_origin(const char *name) {
  const char *best = hn_optype_of_operator(name);
  if (best) return best;
  for (const char *part = name, *end;; part = end + 1) {
    end = part + strcspn(part, "+");
    const char *op = hn_op_of_name(part, (size_t)(end - part));
    if (op && (!best || hn_op_weight(op) > hn_op_weight(best))) best = op;
    if (!*end) return best;
  }
}

/* The node that stands for a framework's operator or a named range: where a kernel comes from. */
static int32_t find_node(writer *w, int32_t op, int32_t step) {
  uint32_t name = w->t->host.ptr[op].name;
  if (w->node_of[name] >= 0) return w->node_of[name];
  hone_node_fact node = {.name = name_of(w, name),
                         .op_type = type_of_origin(name_of(w, name)),
                         .fate = HONE_NODE_EXECUTED,
                         .step = step};
  return w->node_of[name] = hone_facts_add_node(w->in->facts, &node);
}

static int32_t new_step(writer *w, const hn_timeline_event *e, int32_t op) {
  const char *name = name_of(w, e->name);
  const char *from = op == HN_NO_EVENT ? NULL : name_of(w, w->t->host.ptr[op].name);
  hone_step_fact step = {.anchor_node = -1};
  if (e->class == HN_EVENT_DEVICE && e->kind == HONE_SPAN_KERNEL) {
    step.op_type = hn_optype_of_kernel(name);
    step.dtype = hn_optype_dtype_of_kernel(name);
    step.is_reference = e->reference;
    const char *type = from ? type_of_origin(from) : NULL;
    if (type && !hn_optype_is_reformat(step.op_type) && !hn_optype_is_communication(step.op_type))
      step.op_type = type;
    step.is_reformat = hn_optype_is_reformat(step.op_type);
  } else if (e->class == HN_EVENT_OP) {
    step.op_type = hn_optype_of_operator(name);
    step.is_reformat = hn_optype_is_reformat(step.op_type);
  } else
    from = NULL;
  /* The same kernel on behalf of different operators is different layers. */
  char key[KEY_LENGTH_MOST];
  int32_t op_name = from ? (int32_t)w->t->host.ptr[op].name : -1;
  if (w->step_of[e->name] < 0) w->first_op[e->name] = op_name;
  if (from && w->first_op[e->name] != op_name)
    snprintf(key, sizeof key, "%s <- %.500s", name, from);
  else
    snprintf(key, sizeof key, "%s", name);
  intptr_t known = (intptr_t)hn_map_get(&w->in->steps, key);
  if (known) return (int32_t)(known - 1);
  int32_t node = -1;
  size_t steps;
  hone_facts_steps(w->in->facts, &steps);
  if (from) node = find_node(w, op, (int32_t)steps);
  if (node >= 0) {
    step.anchor_node = node;
    step.nodes = &node;
    step.node_count = 1;
  }
  return hn_import_step(w->in, key, &step);
}

/* The step of an event, by its name and what it works for. */
static int32_t find_step(writer *w, const hn_timeline_event *e, int32_t op) {
  bool kernel = e->class == HN_EVENT_DEVICE && e->kind == HONE_SPAN_KERNEL;
  int32_t op_name = kernel && op != HN_NO_EVENT ? (int32_t)w->t->host.ptr[op].name : -1;
  if (w->step_of[e->name] >= 0 && w->step_op[e->name] == op_name) return w->step_of[e->name];
  int32_t step = new_step(w, e, kernel ? op : HN_NO_EVENT);
  w->step_of[e->name] = step;
  w->step_op[e->name] = op_name;
  return step;
}

/* ---- spans ---- */

/* The first window that ends after a time. */
static size_t window_after(const hn_timeline *t, int64_t time) {
  size_t low = 0, high = t->windows.len;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (t->windows.ptr[middle].end <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static hone_span span_of(const hn_timeline_event *e, hone_span_kind kind, int32_t lane) {
  return (hone_span){.start_ns = e->start,
                     .end_ns = e->end,
                     .kind = kind,
                     .lane = lane,
                     .iteration = -1,
                     .step = -1,
                     .bytes = e->bytes,
                     .correlation = e->correlation,
                     .launch = e->launch,
                     .source_memory = e->memory & 15,
                     .target_memory = e->memory >> 4};
}

/* Adds the event's part of each iteration (those that run over an edge are cut there); outside of all, when
 * `outside`, the whole as an event of the time line. */
static hone_status put(writer *w, const hn_timeline_event *e, int32_t op, hone_span_kind kind, int32_t lane,
                       bool outside, hone_error *error) {
  const hn_timeline *t = w->t;
  hone_span span = span_of(e, kind, lane);
  bool any = false;
  for (size_t i = window_after(t, e->start); i < t->windows.len; i++) {
    const hn_timeline_window *window = &t->windows.ptr[i];
    if (window->start > e->end || (window->start == e->end && e->start < e->end)) break;
    span.start_ns = e->start > window->start ? e->start : window->start;
    span.end_ns = e->end < window->end ? e->end : window->end;
    if (span.end_ns < span.start_ns) continue;
    span.iteration = (int32_t)i;
    span.parent = w->run_spans[i];
    span.step = find_step(w, e, op);
    if (span.step < 0) return no_memory(error);
    if (any) span.bytes = 0; /* told once */
    if (!hone_facts_add_span(w->in->facts, &span)) return no_memory(error);
    any = true;
  }
  if (kind != HONE_SPAN_SYNC || w->figure != OF_DEVICE) { /* waiting for a device is no work */
    w->put_count[any]++;
    w->put_ns[any] += (double)(e->end - e->start);
  }
  if (any || !outside) return HONE_OK;
  span.name = name_of(w, e->name);
  return hone_facts_add_span(w->in->facts, &span) ? HONE_OK : no_memory(error);
}

static hone_span_kind device_kind(const writer *w, const hn_timeline_event *e) {
  if (e->kind == HONE_SPAN_KERNEL && hn_optype_is_reformat(hn_optype_of_kernel(name_of(w, e->name))))
    return HONE_SPAN_REFORMAT;
  return (hone_span_kind)e->kind;
}

/* That it was done in some iteration says nothing of where work comes from. */
static int32_t origin(const hn_timeline *t, int32_t op) {
  bool mark =
      op != HN_NO_EVENT && t->host.ptr[op].class == HN_EVENT_RANGE && t->is_mark[t->host.ptr[op].name];
  return mark ? HN_NO_EVENT : op;
}

static hone_status write_device(writer *w, hone_error *error) {
  hone_status status = HONE_OK;
  const hn_timeline *t = w->t;
  uint8_t *kinds = hn_malloc(w->t->names.len + 1); /* by name, 0xff: not asked yet */
  if (!kinds) return no_memory(error);
  memset(kinds, 0xff, w->t->names.len + 1);
  for (size_t i = 0; i < w->t->device.len && !status; i++) {
    const hn_timeline_event *e = &w->t->device.ptr[i];
    hone_span_kind kind = (hone_span_kind)e->kind;
    if (kind == HONE_SPAN_KERNEL) {
      if (kinds[e->name] == 0xff) kinds[e->name] = (uint8_t)device_kind(w, e);
      kind = (hone_span_kind)kinds[e->name];
    }
    int32_t lane;
    if (!free_lane(w, e, kind == HONE_SPAN_SYNC, &lane))
      status = no_memory(error);
    else
      status = put(w, e, origin(t, t->device_op[i]), kind, lane, true, error);
  }
  hn_free(kinds);
  return status;
}

/* Ranges that are named like the stages around the network. */
static hone_span_kind stage_kind(const char *name) {
  static const char *const pre[] = {"preproc", "pre-proc", "pre_proc", "pre proc", "dataloader", "data_load"};
  static const char *const post[] = {"postproc", "post-proc", "post_proc", "post proc"};
  for (size_t i = 0; i < sizeof pre / sizeof *pre; i++)
    if (strcasestr(name, pre[i])) return HONE_SPAN_PRE;
  for (size_t i = 0; i < sizeof post / sizeof *post; i++)
    if (strcasestr(name, post[i])) return HONE_SPAN_POST;
  return HONE_SPAN_HOST;
}

static hone_span_kind stage_of(const writer *w, uint32_t name) {
  if (w->stages[name] == NOT_ASKED) w->stages[name] = (uint8_t)stage_kind(name_of(w, name));
  return (hone_span_kind)w->stages[name];
}

/* Between processes or hosts. */
static bool is_communication(const char *name) {
  return strncmp(name, "gloo:", 5) == 0 || strncmp(name, "nccl:", 5) == 0 || strncmp(name, "mpi:", 4) == 0;
}

/* Is the range an iteration, or around a whole one? */
static bool is_mark(const hn_timeline *t, const hn_timeline_event *e) {
  if (e->class != HN_EVENT_RANGE) return false;
  if (t->is_mark[e->name]) return true;
  size_t i = window_after(t, e->start);
  return i < t->windows.len && e->start <= t->windows.ptr[i].start && e->end >= t->windows.ptr[i].end;
}

/* What a host event is in the figures; HONE_SPAN_KIND_COUNT: nothing but a line of the time line. */
static hone_span_kind host_kind(const writer *w, size_t i) {
  const hn_timeline_event *e = &w->t->host.ptr[i];
  const char *name = name_of(w, e->name);
  if (e->class == HN_EVENT_RANGE && is_mark(w->t, e)) return HONE_SPAN_KIND_COUNT;
  hone_span_kind range =
      e->class == HN_EVENT_RANGE || e->class == HN_EVENT_OP ? stage_of(w, e->name) : HONE_SPAN_HOST;
  if (range != HONE_SPAN_HOST) return range;
  switch (w->figure) {
  case OF_DEVICE:
    return e->class == HN_EVENT_CALL && e->kind == HONE_SPAN_SYNC && !w->waits_on_device[i]
               ? HONE_SPAN_SYNC
               : HONE_SPAN_KIND_COUNT;
  case OF_OPS:
    if (e->class == HN_EVENT_OP)
      return e->kind == HONE_SPAN_REFORMAT || hn_optype_is_reformat(hn_optype_of_operator(name))
                 ? HONE_SPAN_REFORMAT
                 : HONE_SPAN_KERNEL;
    break;
  case OF_CALLS: break;
  }
  if (e->class == HN_EVENT_RANGE) return is_communication(name) ? HONE_SPAN_SYNC : HONE_SPAN_HOST;
  return (hone_span_kind)e->kind;
}

typedef struct open_event {
  int64_t end;
  uint32_t name;
  int32_t lane;
} open_event;

static hone_status write_host(writer *w, hone_error *error) {
  hone_status status = HONE_OK;
  HN_VEC(open_event) stack = {0};
  const hn_timeline_event *all = w->t->host.ptr;
  int32_t main_lane = -1;
  for (size_t i = 0; i < w->t->host.len && !status; i++) {
    const hn_timeline_event *e = &all[i];
    if (!i || e->lane != all[i - 1].lane) {
      stack.len = 0;
      main_lane = -1;
    }
    if (e->class == HN_EVENT_FLOW) continue;
    hone_span_kind kind = host_kind(w, i);
    bool figures = kind != HONE_SPAN_KIND_COUNT;
    if (!figures && e->start >= w->host_horizon) continue;
    if (main_lane < 0) main_lane = open_lane(w, e->lane, false, 0);
    int32_t lane = main_lane;
    if (figures) {
      while (stack.len && stack.ptr[stack.len - 1].end <= e->start) stack.len--;
      const open_event *outer = stack.len ? &stack.ptr[stack.len - 1] : NULL;
      if (outer && outer->name == e->name && outer->end >= e->end)
        continue; /* inside itself: counted already */
      if (outer && outer->end < e->end) {
        if (!free_lane(w, e, true, &lane)) status = no_memory(error);
      } else if (e->end > e->start && !hn_vec_push(&stack, (open_event){e->end, e->name, lane}))
        status = no_memory(error);
    }
    if (status) break;
    if (figures)
      status = put(w, e, HN_NO_EVENT, kind, lane, e->start < w->host_horizon, error);
    else {
      hone_span span = span_of(e, e->class == HN_EVENT_CALL ? (hone_span_kind)e->kind : HONE_SPAN_HOST, lane);
      span.name = name_of(w, e->name);
      if (!hone_facts_add_span(w->in->facts, &span)) status = no_memory(error);
    }
  }
  hn_vec_free(&stack);
  return status;
}

/* ---- the whole ---- */

static figure choose_figure(const hn_timeline *t) {
  bool ops = false;
  for (size_t i = 0; i < t->device.len; i++)
    if (t->device.ptr[i].kind != HONE_SPAN_SYNC) return OF_DEVICE;
  for (size_t i = 0; i < t->host.len && !ops; i++) ops = t->host.ptr[i].class == HN_EVENT_OP;
  return ops ? OF_OPS : OF_CALLS;
}

/* Without named iterations there is one: from the first to the last of what the figures are about. */
static bool make_window(writer *w) {
  hn_timeline *t = w->t;
  hn_timeline_window one = {INT64_MAX, INT64_MIN, 0};
  const hn_timeline_store *s = w->figure == OF_DEVICE ? &t->device : &t->host;
  for (size_t i = 0; i < s->len; i++) {
    const hn_timeline_event *e = &s->ptr[i];
    if (w->figure == OF_DEVICE
            ? e->kind == HONE_SPAN_SYNC
            : e->class == HN_EVENT_FLOW || (w->figure == OF_OPS && e->class != HN_EVENT_OP))
      continue;
    if (e->start < one.start) one.start = e->start;
    if (e->end > one.end) one.end = e->end;
  }
  return one.start > one.end || hn_vec_push(&t->windows, one);
}

/* Iterations of which only a part was kept say nothing. */
static void drop_cut_windows(writer *w) {
  hn_timeline *t = w->t;
  int64_t horizon = w->figure == OF_DEVICE ? t->device.horizon : t->host.horizon;
  size_t kept = 0;
  for (size_t i = 0; i < t->windows.len; i++)
    if (t->windows.ptr[i].end <= horizon) t->windows.ptr[kept++] = t->windows.ptr[i];
  t->windows.len = kept;
}

static bool write_runs(writer *w) {
  hn_timeline *t = w->t;
  w->run_spans = hn_calloc(t->windows.len + 1, sizeof *w->run_spans);
  if (!w->run_spans) return false;
  int32_t lane = w->lane_count++;
  hone_facts_name_lane(w->in->facts, lane, "iterations");
  for (size_t i = 0; i < t->windows.len; i++) {
    const hn_timeline_window *window = &t->windows.ptr[i];
    hone_span span = {.kind = HONE_SPAN_RUN,
                      .start_ns = window->start,
                      .end_ns = window->end,
                      .lane = lane,
                      .iteration = (int32_t)i,
                      .step = -1,
                      .name = window->name ? name_of(w, window->name) : NULL};
    w->run_spans[i] = hone_facts_add_span(w->in->facts, &span);
    if (!w->run_spans[i]) return false;
  }
  return true;
}

/* How long each device worked, between its first and last work. */
static void count_busy(writer *w) {
  const hn_timeline *t = w->t;
  for (size_t lane = 0; lane < t->lanes.len; lane++) {
    const hn_timeline_stored_lane *l = &t->lanes.ptr[lane];
    bool first = l->device && l->used;
    for (size_t k = 0; first && k < lane; k++)
      if (t->lanes.ptr[k].device && t->lanes.ptr[k].used && t->lanes.ptr[k].a == l->a) first = false;
    if (!first) continue;
    int64_t start = INT64_MAX, until = INT64_MIN;
    double busy = 0;
    for (size_t i = 0; i < t->device.len; i++) {
      const hn_timeline_event *e = &t->device.ptr[i];
      if (e->kind == HONE_SPAN_SYNC || e->lane >= t->lanes.len || t->lanes.ptr[e->lane].a != l->a) continue;
      if (start == INT64_MAX) start = until = e->start;
      if (e->end <= until) continue;
      busy += (double)(e->end - (e->start > until ? e->start : until));
      until = e->end;
    }
    if (start >= until) continue;
    double whole = (double)until - (double)start;
    char busy_name[64], idle_name[64];
    snprintf(busy_name, sizeof busy_name, "device_%llu_busy_ms", (unsigned long long)l->a);
    snprintf(idle_name, sizeof idle_name, "device_%llu_idle_pct", (unsigned long long)l->a);
    hone_facts_add_counter(w->in->facts, &(hone_counter){busy_name, "ms", -1, busy / 1e6});
    hone_facts_add_counter(w->in->facts, &(hone_counter){idle_name, "%", -1, 100 * (whole - busy) / whole});
  }
}

static void say_horizon(writer *w, const char *side, int64_t horizon) {
  if (horizon == INT64_MAX || !w->t->windows.len) return;
  double seconds = (double)(horizon - w->t->windows.ptr[0].start) / 1e9;
  hone_facts_add_unmeasured(
      w->in->facts, hn_import_say(w->in, "later events of the %s", side),
      hn_import_say(w->in,
                    "the trace is longer than what is kept: events of the %s end %.3f s after the "
                    "start of the first iteration; calls_in_trace and ms_in_trace cover all",
                    side, seconds));
}

/* The figures are of the iterations alone: a profiler that marks few of them leaves much aside. */
static void say_outside(const writer *w) {
  const double all = w->put_ns[0] + w->put_ns[1];
  if (!w->put_count[0] || w->put_ns[0] < OUTSIDE_SHARE * all) return;
  hone_facts_add_unmeasured(
      w->in->facts, "work outside of the iterations",
      hn_import_say(w->in,
                    "%llu of %llu events (%.1f of %.1f ms, counted one by one) are on the time line only",
                    (unsigned long long)w->put_count[0],
                    (unsigned long long)(w->put_count[0] + w->put_count[1]), w->put_ns[0] / 1e6, all / 1e6));
}

/* Spans were left out: what they add up to is told by name. */
static void write_totals(writer *w) {
  const hn_timeline *t = w->t;
  if (!t->dropped) return;
  w->in->meta.dropped_spans += (double)t->dropped;
  say_horizon(w, "device", t->device.horizon);
  say_horizon(w, "host", t->host.horizon);
  for (size_t i = 0; i < t->names.len; i++) {
    if (w->step_of[i] < 0) continue;
    int side = w->figure == OF_DEVICE && t->totals.ptr[i].count[0] ? 0 : 1;
    hone_facts_add_counter(w->in->facts, &(hone_counter){"calls_in_trace", "", w->step_of[i],
                                                         (double)t->totals.ptr[i].count[side]});
    hone_facts_add_counter(
        w->in->facts, &(hone_counter){"ms_in_trace", "ms", w->step_of[i], t->totals.ptr[i].ns[side] / 1e6});
  }
}

/* Host events beyond what a time line can show are left out by time. */
static int64_t find_horizon(const hn_timeline *t) {
  enum { SAMPLES = 1024 };
  int64_t sample[SAMPLES];
  if (t->host.len <= IDLE_HOST_SPANS_MOST) return INT64_MAX;
  for (size_t i = 0; i < SAMPLES; i++) sample[i] = t->host.ptr[i * (t->host.len / SAMPLES)].start;
  for (size_t i = 1; i < SAMPLES; i++) /* few: by insertion */
    for (size_t k = i; k && sample[k - 1] > sample[k]; k--) {
      int64_t swap = sample[k];
      sample[k] = sample[k - 1];
      sample[k - 1] = swap;
    }
  return sample[SAMPLES * (size_t)IDLE_HOST_SPANS_MOST / t->host.len];
}

static bool prepare(writer *w) {
  hn_timeline *t = w->t;
  size_t n = t->names.len + 1;
  w->step_of = hn_malloc(n * sizeof *w->step_of);
  w->step_op = hn_malloc(n * sizeof *w->step_op);
  w->first_op = hn_malloc(n * sizeof *w->first_op);
  w->node_of = hn_malloc(n * sizeof *w->node_of);
  size_t lanes = 2 * ((size_t)UINT16_MAX + 1); /* whatever an event's lane says */
  w->first_sublane = hn_malloc(lanes * sizeof *w->first_sublane);
  w->stages = hn_malloc(n);
  w->waits_on_device = hn_calloc(t->host.len + 1, sizeof *w->waits_on_device);
  if (!w->step_of || !w->step_op || !w->first_op || !w->node_of || !w->first_sublane || !w->stages ||
      !w->waits_on_device)
    return false;
  memset(w->stages, NOT_ASKED, n);
  for (size_t i = 0; i < lanes; i++) w->first_sublane[i] = -1;
  for (size_t i = 0; i < n; i++) w->step_of[i] = w->step_op[i] = w->node_of[i] = -1;
  for (size_t i = 0; i < t->device.len; i++)
    if (t->device.ptr[i].kind == HONE_SPAN_SYNC && t->started_by[i] != HN_NO_EVENT)
      w->waits_on_device[t->started_by[i]] = true;
  w->host_horizon = find_horizon(t);
  drop_cut_windows(w);
  return (t->windows.len || make_window(w)) && write_runs(w);
}

hone_status hn_timeline_finish(hn_timeline *t, hn_import *in, hone_error *error) {
  if (t->failed) return hn_fail_memory(error, t->device.len * sizeof *t->device.ptr, "the events of a trace");
  writer w = {.t = t, .in = in};
  hone_status status = hn_timeline_join(t, error);
  if (status) return status;
  w.figure = choose_figure(t);
  if (!prepare(&w)) status = no_memory(error);
  if (!status) status = write_device(&w, error);
  if (!status) status = write_host(&w, error);
  if (!status) {
    if (w.figure == OF_DEVICE) count_busy(&w);
    say_outside(&w);
    write_totals(&w);
  }
  hn_vec_free(&w.sublanes);
  hn_free(w.run_spans);
  hn_free(w.step_of);
  hn_free(w.step_op);
  hn_free(w.first_op);
  hn_free(w.first_sublane);
  hn_free(w.stages);
  hn_free(w.node_of);
  hn_free(w.waits_on_device);
  return status;
}
