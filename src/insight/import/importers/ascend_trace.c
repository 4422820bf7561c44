/* msprof_*.json and trace_view.json: Chrome traces of Ascend. What an event is can be told from its
 * arguments; the names of the processes may come behind the events.
 *
 * - "Task Type" or "Stream Id": work on the device. - "level", or a name like AscendCL@aclrtMemcpy: a call of
 *   CANN. - cat cpu_op: an operator of PyTorch. - arrows async_npu: which operator started which task.
 * - The plane "Overlap Analysis" repeats the device's work in other words and is left out. */
#include "insight/import/importers/ascend.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Both ends of an arrow: where the work was started, and which task it is. */
typedef struct arrow {
  int64_t from_ns;
  uint32_t lane, task; /* task: number of the device event; 0: not seen yet */
  bool has_from;
} arrow;

typedef struct reading {
  hn_ascend *a;
  hn_source *source;
  hn_map arrows; /* id -> arrow */
  hn_map tasks;  /* "stream:ts" -> number */
  hn_arena arena;
  uint32_t task_count;
  size_t events, device;
} reading;

static const char *id_text(const hn_jvalue *v, char buf[64]) {
  if (!v || !v->text) return "";
  snprintf(buf, 64, "%.60s", v->text);
  return buf;
}

static uint64_t number_of(const hn_jvalue *v) {
  double d = v && v->kind == HN_JNUMBER ? v->number : 0;
  if (v && v->kind == HN_JTEXT) {
    double parsed;
    if (hn_text_count(v->text, &parsed)) d = parsed;
  }
  return d >= 0 && d < 1e18 ? (uint64_t)d : 0;
}

/* The same number for a task and for the arrows that end at its start. 0: out of memory. */
static uint32_t task_number(reading *r, const hn_jvalue *event) {
  char tid[64], ts[64];
  const char *key = hn_arena_printf(&r->arena, "%s:%s", id_text(hn_jget(event, "tid"), tid),
                                    id_text(hn_jget(event, "ts"), ts));
  if (!key) return 0;
  uintptr_t known = (uintptr_t)hn_map_get(&r->tasks, key);
  if (!known && r->task_count < UINT32_MAX) {
    known = ++r->task_count;
    if (!hn_map_set(&r->tasks, key, (void *)known)) return 0;
  }
  return (uint32_t)known;
}

static uint32_t host_lane(reading *r, const hn_jvalue *v) {
  uint64_t tid = number_of(hn_jget(v, "tid"));
  char name[64];
  snprintf(name, sizeof name, "thread %llu", (unsigned long long)tid);
  return hn_timeline_lane(r->a->trace, false, number_of(hn_jget(v, "pid")), tid, name);
}

static hone_span_kind device_kind(const char *name, const hn_jvalue *args) {
  const char *type = hn_jtext(args, "Task Type"), *operation = hn_jtext(args, "operation");
  if (operation && strcasestr(operation, "host to device")) return HONE_SPAN_COPY_H2D;
  if (operation && strcasestr(operation, "device to host")) return HONE_SPAN_COPY_D2H;
  if (strcasestr(name, "memcpy") || (type && strcasestr(type, "memcpy")) || hn_text_starts(name, "hcom_"))
    return HONE_SPAN_COPY;
  if (strcasestr(name, "event_wait") || strcasestr(name, "notify") || (type && strcasestr(type, "wait")))
    return HONE_SPAN_SYNC;
  return HONE_SPAN_KERNEL;
}

static hone_status add_device(reading *r, const hn_jvalue *v, const hn_jvalue *args, hn_event *e,
                              hone_error *error) {
  const hn_jvalue *stream = hn_jget(args, "Stream Id");
  if (!stream) stream = hn_jget(v, "tid");
  char name[64];
  snprintf(name, sizeof name, "NPU stream %llu", (unsigned long long)number_of(stream));
  e->class = HN_EVENT_DEVICE;
  e->kind = device_kind(e->name, args);
  const char *type = hn_jtext(args, "Task Type");
  e->reference = type && strcmp(type, "AI_CPU") == 0;
  e->lane = hn_timeline_lane(r->a->trace, true, number_of(hn_jget(v, "pid")), number_of(stream), name);
  e->correlation = task_number(r, v);
  if (!e->correlation) return hn_fail_memory(error, 0, "a trace of msprof");
  e->bytes = number_of(hn_jget(args, "size(B)"));
  r->device++;
  hn_timeline_add(r->a->trace, e);
  return HONE_OK;
}

/* The flow arrows of one id; an arrow is complete when its start is known and its task. */
static hone_status add_arrow(reading *r, const hn_jvalue *v, bool start, hone_error *error) {
  char buf[64];
  const char *id = id_text(hn_jget(v, "id"), buf);
  arrow *found = hn_map_get(&r->arrows, id);
  if (!found) {
    const char *key = hn_arena_strdup(&r->arena, id);
    found = HN_NEW(&r->arena, arrow);
    if (!key || !found || !hn_map_set(&r->arrows, key, found))
      return hn_fail_memory(error, 0, "a trace of msprof");
  }
  if (start) {
    found->has_from = hn_jtime(v, "ts", 3, &found->from_ns);
    found->lane = host_lane(r, v);
  } else {
    found->task = task_number(r, v);
  }
  if (!found->has_from || !found->task) return HONE_OK;
  hn_event e = {.class = HN_EVENT_FLOW,
                .name = "flow",
                .start_ns = found->from_ns,
                .end_ns = found->from_ns,
                .lane = found->lane,
                .correlation = found->task};
  hn_timeline_add(r->a->trace, &e);
  return HONE_OK;
}

static hone_status complete(reading *r, const hn_jvalue *v, hone_error *error) {
  const char *name = hn_jtext(v, "name"), *category = hn_jtext(v, "cat");
  const hn_jvalue *args = hn_jget(v, "args");
  int64_t length = 0;
  hn_event e = {.name = name};
  const bool stamped =
      hn_jtime(v, "ts", 3, &e.start_ns) && (!hn_jget(v, "dur") || hn_jtime(v, "dur", 3, &length));
  if (!name || !stamped || length < 0) {
    hone_status status = hn_source_fail(r->source, error, v->offset, "an event without %s",
                                        name ? "a time of 0 or more" : "name");
    hn_error_expected(error, "ph, name, ts, dur, args");
    return status;
  }
  e.end_ns = e.start_ns + length;
  if (hn_jget(args, "Task Type") || hn_jget(args, "Stream Id")) return add_device(r, v, args, &e, error);
  if (category && strcmp(category, "cpu_op") == 0)
    e.class = HN_EVENT_OP;
  else if (hn_jget(args, "level") || strchr(name, '@')) {
    if (category && (strcmp(category, "dequeue") == 0 || strcmp(category, "enqueue") == 0)) return HONE_OK;
    e.class = HN_EVENT_CALL;
    e.kind = strstr(name, "Synchronize") || hn_timeline_waits(name) ? HONE_SPAN_SYNC : HONE_SPAN_HOST;
  } else if ((category && strcmp(category, "user_annotation") == 0) || hn_text_starts(name, "ProfilerStep"))
    e.class = HN_EVENT_RANGE;
  else
    return HONE_OK;
  e.lane = host_lane(r, v);
  hn_timeline_add(r->a->trace, &e);
  return HONE_OK;
}

static hone_status visit(void *user, const char *member, bool in_array, const hn_jvalue *v,
                         hone_error *error) {
  reading *r = user;
  if (member && !(in_array && strcmp(member, "traceEvents") == 0)) return HONE_OK;
  if (v->kind != HN_JOBJECT) return hn_source_fail(r->source, error, v->offset, "an event that is no object");
  const char *phase = hn_jtext(v, "ph"), *category = hn_jtext(v, "cat");
  r->events++;
  if (!phase) return hn_source_fail(r->source, error, v->offset, "an event without ph");
  if (strcmp(phase, "X") == 0) return complete(r, v, error);
  if (category && strcmp(category, "async_npu") == 0 && (*phase == 's' || *phase == 'f'))
    return add_arrow(r, v, *phase == 's', error);
  return HONE_OK;
}

hone_status hn_ascend_trace(hn_ascend *a, hn_source *source, hone_error *error) {
  if (a->trace) {
    hone_status status = hn_source_fail(source, error, 0, "a second trace");
    hn_error_hint(error, "give the files of one run on one device");
    return status;
  }
  a->trace = hn_timeline_create();
  if (!a->trace) return hn_fail_memory(error, 0, "a trace of msprof");
  reading r = {.a = a, .source = source};
  const hn_jreader reader = {visit, &r, NULL};
  hone_status status = hn_jread(source, &reader, error);
  if (!status && !r.events) status = hn_source_fail(source, error, 0, "the trace holds no event");
  hn_map_free(&r.arrows);
  hn_map_free(&r.tasks);
  hn_arena_free(&r.arena);
  return status;
}
