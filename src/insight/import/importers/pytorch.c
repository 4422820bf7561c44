/* PyTorch's profiler (Kineto): Chrome trace events of host and accelerator, of any age and vendor. */
#include "insight/import/import.h"
#include "insight/import/common/timeline.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { METRICS_MOST = 128 };

/* The lane that was asked for last: mostly it is the next one, too. */
typedef struct last_lane {
  uint64_t a, b;
  uint32_t lane1; /* + 1; 0: none yet */
} last_lane;

typedef struct state {
  last_lane last_device, last_host;
  hn_timeline *timeline;
  double peak_bytes[2]; /* of the host's and of the devices' allocator */
  bool rocm, xpu;
  uint64_t python, broken;
  size_t metric_count;
  struct {
    const char *name;
    double sum;
  } metrics[METRICS_MOST]; /* of profiler ranges */
  uint64_t ranges;
  hn_import *in;
} state;

static int sniff(const hn_sniff *s) {
  char first = hn_sniff_first(s);
  if (first != '{' && first != '[') return 0;
  if (hn_sniff_has(s, "async_npu") || hn_sniff_has(s, "Ascend Hardware")) return 0;
  if (hn_sniff_has(s, "\"schemaVersion\"") &&
      (hn_sniff_has(s, "\"traceEvents\"") || hn_sniff_has(s, "\"deviceProperties\"") ||
       hn_sniff_has(s, "\"distributedInfo\"")))
    return 90;
  if (!hn_sniff_has(s, "\"ph\"")) return 0;
  if (hn_sniff_has(s, "\"cpu_op\"") || hn_sniff_has(s, "\"cuda_runtime\"") ||
      hn_sniff_has(s, "\"gpu_memcpy\"") || hn_sniff_has(s, "PyTorch Profiler"))
    return 80;
  if (hn_sniff_has(s, "\"External id\"") || hn_sniff_has(s, "\"aten::") ||
      hn_sniff_has(s, "CUDA functions") || hn_sniff_has(s, "CPU functions"))
    return 60;
  return 0;
}

/* ---- one event ---- */

typedef struct fields {
  const hn_jvalue *name, *cat, *ph, *pid, *tid, *ts, *dur, *id, *args;
} fields;

static fields read_fields(const hn_jvalue *event) {
  fields f = {0};
  for (const hn_jvalue *v = event->first; v; v = v->next) {
    const char *k = v->key;
    if (strcmp(k, "ph") == 0)
      f.ph = v;
    else if (strcmp(k, "cat") == 0)
      f.cat = v;
    else if (strcmp(k, "name") == 0)
      f.name = v;
    else if (strcmp(k, "pid") == 0)
      f.pid = v;
    else if (strcmp(k, "tid") == 0)
      f.tid = v;
    else if (strcmp(k, "ts") == 0)
      f.ts = v;
    else if (strcmp(k, "dur") == 0)
      f.dur = v;
    else if (strcmp(k, "args") == 0)
      f.args = v;
    else if (strcmp(k, "id") == 0)
      f.id = v;
  }
  return f;
}

static const char *text_of(const hn_jvalue *v) { return v && v->kind == HN_JTEXT ? v->text : NULL; }

/* Numbers are also written as text; texts that hold none stand for themselves by their hash. */
static uint64_t number_or_hash(const hn_jvalue *v) {
  if (!v) return 0;
  if (v->kind == HN_JNUMBER) return v->number >= 0 && v->number < 1e18 ? (uint64_t)v->number : 0;
  if (v->kind != HN_JTEXT) return 0;
  const char *digits = v->text + strcspn(v->text, "0123456789");
  if (*digits && strspn(digits, "0123456789") == strlen(digits)) return strtoull(digits, NULL, 10);
  return hn_hash(v->text, strlen(v->text), 0);
}

static uint32_t number32(const hn_jvalue *v) {
  double n = 0;
  if (v && v->kind == HN_JNUMBER)
    n = v->number;
  else if (v && v->kind == HN_JTEXT && !hn_text_count(v->text, &n))
    n = 0;
  return n > 0 && n < 4294967295.0 ? (uint32_t)n : 0;
}

static bool time_of(const hn_jvalue *v, int64_t *ns) {
  return v && (v->kind == HN_JNUMBER || v->kind == HN_JTEXT) && hn_text_ns(v->text, 3, ns);
}

/* What a category is. The names changed: "Kernel" (2021), "kernel"; "Operator", "cpu_op"; "Runtime",
 * "cuda_runtime", "hip_runtime", "xpu_runtime", "cuda_driver". */
typedef enum category {
  NOTHING,
  KERNEL,
  MEMCPY,
  MEMSET,
  WAIT,
  OPERATOR,
  ANNOTATION,
  CALL,
  PYTHON,
  COUNTERS
} category;

static category category_of(const char *cat) {
  if (!cat) return NOTHING;
  static const struct {
    const char *word;
    category category;
  } words[] = {{"cpu_op", OPERATOR},
               {"kernel", KERNEL},
               {"cuda_runtime", CALL},
               {"python_function", PYTHON},
               {"user_annotation", ANNOTATION},
               {"gpu_memcpy", MEMCPY},
               {"gpu_memset", MEMSET},
               {"cuda_sync", WAIT},
               {"cuda_driver", CALL},
               {"operator", OPERATOR},
               {"runtime", CALL},
               {"memcpy", MEMCPY},
               {"memset", MEMSET},
               {"concurrent_kernel", KERNEL},
               {"cuda_profiler_range", COUNTERS}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if ((cat[0] | 32) == words[i].word[0] && strcasecmp(cat, words[i].word) == 0) return words[i].category;
  if (hn_text_ends(cat, "_runtime") || hn_text_ends(cat, "_driver")) return CALL;
  return NOTHING;
}

/* The profiler before Kineto wrote no categories, but "processes" of functions. Operators have one word. */
static category category_of_process(const hn_jvalue *pid, const hn_jvalue *tid, const char *name) {
  const char *p = text_of(pid), *t = text_of(tid);
  if ((p && strcmp(p, "CUDA functions") == 0) || (t && strcmp(t, "CUDA functions") == 0)) return KERNEL;
  if (!p || strcmp(p, "CPU functions") != 0) return NOTHING;
  return strpbrk(name, " #") ? ANNOTATION : OPERATOR;
}

static hone_span_kind direction(const char *name) {
  if (strstr(name, "HtoD") || strstr(name, "HostToDevice") || strstr(name, "Host -> Device"))
    return HONE_SPAN_COPY_H2D;
  if (strstr(name, "DtoH") || strstr(name, "DeviceToHost") || strstr(name, "Device -> Host"))
    return HONE_SPAN_COPY_D2H;
  return HONE_SPAN_COPY;
}

/* "Memcpy HtoD (Pinned -> Device)" */
static void memories(const char *name, hn_event *e) {
  const char *open = strchr(name, '('), *arrow = open ? strstr(open, "->") : NULL;
  if (!arrow) return;
  e->source_memory = (uint8_t)hn_timeline_memory(open + 1);
  arrow += 2;
  while (*arrow == ' ') arrow++;
  e->target_memory = (uint8_t)hn_timeline_memory(arrow);
}

static void three(const hn_jvalue *list, uint32_t *x, uint32_t *y, uint32_t *z) {
  const hn_jvalue *v = list && list->kind == HN_JARRAY ? list->first : NULL;
  uint32_t *to[] = {x, y, z};
  for (int i = 0; i < 3 && v; i++, v = v->next) *to[i] = number32(v);
}

typedef struct arguments {
  const hn_jvalue *external, *correlation, *device, *stream, *bytes, *grid, *block, *registers, *shared,
      *occupancy;
} arguments;

static arguments read_arguments(const hn_jvalue *args) {
  arguments a = {0};
  for (const hn_jvalue *v = args && args->kind == HN_JOBJECT ? args->first : NULL; v; v = v->next) {
    const char *k = v->key;
    switch (k[0] | 32) {
    case 'e':
      if (strcasecmp(k, "external id") == 0)
        a.external = v;
      else if (hn_text_starts(k, "est. achieved occ"))
        a.occupancy = v;
      break;
    case 'c':
      if (strcmp(k, "correlation") == 0) a.correlation = v;
      break;
    case 'd':
      if (strcmp(k, "device") == 0) a.device = v;
      break;
    case 's':
      if (strcmp(k, "stream") == 0)
        a.stream = v;
      else if (strcmp(k, "shared memory") == 0)
        a.shared = v;
      break;
    case 'b':
      if (strcmp(k, "block") == 0)
        a.block = v;
      else if (strcasecmp(k, "bytes") == 0)
        a.bytes = v;
      break;
    case 'g':
      if (strcmp(k, "grid") == 0) a.grid = v;
      break;
    case 'r':
      if (strcmp(k, "registers per thread") == 0) a.registers = v;
      break;
    }
  }
  return a;
}

static uint32_t launch_of(state *s, const arguments *a) {
  if (!a->grid && !a->block) return 0;
  hone_launch launch;
  memset(&launch, 0, sizeof launch);
  three(a->grid, &launch.grid_x, &launch.grid_y, &launch.grid_z);
  three(a->block, &launch.block_x, &launch.block_y, &launch.block_z);
  launch.registers = number32(a->registers);
  launch.dynamic_shared = number32(a->shared);
  double occupancy = a->occupancy && a->occupancy->kind == HN_JNUMBER ? a->occupancy->number : 0;
  if (occupancy > 0 && occupancy <= 100) launch.occupancy_pct = occupancy;
  return hn_timeline_launch(s->timeline, s->in->facts, &launch);
}

static uint32_t device_lane(state *s, const fields *f, const arguments *a) {
  last_lane *l = &s->last_device;
  uint64_t device = number_or_hash(a->device ? a->device : f->pid),
           stream = number_or_hash(a->stream ? a->stream : f->tid);
  if (l->lane1 && l->a == device && l->b == stream) return l->lane1 - 1;
  char name[64];
  snprintf(name, sizeof name, "GPU %llu stream %llu", (unsigned long long)device, (unsigned long long)stream);
  *l = (last_lane){device, stream, hn_timeline_lane(s->timeline, true, device, stream, name) + 1};
  return l->lane1 - 1;
}

static uint32_t host_lane(state *s, const fields *f) {
  last_lane *l = &s->last_host;
  uint64_t process = number_or_hash(f->pid), thread = number_or_hash(f->tid);
  if (l->lane1 && l->a == process && l->b == thread) return l->lane1 - 1;
  char name[128];
  if (text_of(f->tid) && thread > UINT32_MAX)
    snprintf(name, sizeof name, "%.100s", text_of(f->tid));
  else
    snprintf(name, sizeof name, "thread %llu", (unsigned long long)thread);
  *l = (last_lane){process, thread, hn_timeline_lane(s->timeline, false, process, thread, name) + 1};
  return l->lane1 - 1;
}

static void add_device(state *s, const fields *f, const arguments *a, category category, hn_event *e) {
  e->class = HN_EVENT_DEVICE;
  e->lane = device_lane(s, f, a);
  switch (category) {
  case MEMCPY:
    e->kind = direction(e->name);
    memories(e->name, e);
    break;
  case MEMSET: e->kind = HONE_SPAN_COPY; break;
  case WAIT: e->kind = HONE_SPAN_SYNC; break;
  default: e->kind = HONE_SPAN_KERNEL; e->launch = launch_of(s, a);
  }
  double bytes = a->bytes && a->bytes->kind == HN_JNUMBER ? a->bytes->number : 0;
  if (bytes > 0 && bytes < 1e18) e->bytes = (uint64_t)bytes;
  hn_timeline_add(s->timeline, e);
}

static void add_complete(state *s, const fields *f, const char *name) {
  category category = f->cat ? category_of(text_of(f->cat)) : category_of_process(f->pid, f->tid, name);
  if (category == NOTHING) return;
  if (category == PYTHON) {
    s->python++;
    return;
  }
  int64_t dur = 0;
  hn_event e = {.name = name};
  if (!time_of(f->ts, &e.start_ns) || (f->dur && !time_of(f->dur, &dur)) || dur < 0 ||
      __builtin_add_overflow(e.start_ns, dur, &e.end_ns)) {
    s->broken++;
    return;
  }
  arguments a = read_arguments(f->args);
  e.correlation = number32(a.correlation);
  e.op = number32(a.external);
  switch (category) {
  case OPERATOR: e.class = HN_EVENT_OP; break;
  case ANNOTATION: e.class = HN_EVENT_RANGE; break;
  case CALL:
    e.class = HN_EVENT_CALL;
    e.kind = hn_timeline_waits(name) ? HONE_SPAN_SYNC : HONE_SPAN_HOST;
    s->rocm = s->rocm || hn_text_starts(name, "hip");
    s->xpu = s->xpu || hn_text_starts(text_of(f->cat), "xpu");
    break;
  default: add_device(s, f, &a, category, &e); return;
  }
  e.lane = host_lane(s, f);
  hn_timeline_add(s->timeline, &e);
}

/* Counters that CUPTI took of a kernel: the range has no time of its own. */
static void add_counters(state *s, const hn_jvalue *args) {
  s->ranges++;
  for (const hn_jvalue *v = args && args->kind == HN_JOBJECT ? args->first : NULL; v; v = v->next) {
    if (v->kind != HN_JNUMBER) continue;
    size_t i = 0;
    while (i < s->metric_count && strcmp(s->metrics[i].name, v->key) != 0) i++;
    if (i == s->metric_count) {
      const char *name = i < METRICS_MOST ? hn_import_text(s->in, v->key) : NULL;
      if (!name) continue;
      s->metrics[s->metric_count++].name = name;
    }
    s->metrics[i].sum += v->number;
  }
}

/* From the start of a flow arrow: where device work was started, when the call itself is not recorded. */
static void add_flow(state *s, const fields *f) {
  hn_event e = {.class = HN_EVENT_FLOW, .name = "flow", .correlation = number32(f->id)};
  if (!e.correlation || !time_of(f->ts, &e.start_ns)) return;
  e.end_ns = e.start_ns;
  e.lane = host_lane(s, f);
  hn_timeline_add(s->timeline, &e);
}

static void add_memory(state *s, const hn_jvalue *args) {
  double total = hn_jnumber(args, "Total Allocated", 0);
  int type = hn_jnumber(args, "Device Type", 0) > 0;
  if (total > s->peak_bytes[type] && total < 1e18) s->peak_bytes[type] = total;
}

static void add_metadata(state *s, const fields *f, const char *name) {
  const char *text = hn_jtext(f->args, "name");
  uint64_t pid = number_or_hash(f->pid), tid = number_or_hash(f->tid);
  /* Of processes that are devices the lanes have names already. */
  if (!text || strcmp(name, "thread_name") != 0 || hn_text_starts(text, "stream ")) return;
  hn_timeline_name_lane(s->timeline, false, pid, tid, text);
}

static void add_event(state *s, const hn_jvalue *event) {
  if (event->kind != HN_JOBJECT) {
    s->broken++;
    return;
  }
  fields f = read_fields(event);
  const char *ph = text_of(f.ph), *name = text_of(f.name), *cat = text_of(f.cat);
  if (!ph) {
    s->broken++;
    return;
  }
  switch (ph[0]) {
  case 'X':
    if (cat && strcmp(cat, "cuda_profiler_range") == 0)
      add_counters(s, f.args);
    else
      add_complete(s, &f, name ? name : "(no name)");
    break;
  case 's':
    if (cat && (strcmp(cat, "ac2g") == 0 || strcmp(cat, "async") == 0 || strcmp(cat, "async_gpu") == 0))
      add_flow(s, &f);
    break;
  case 'i':
    if (name && strcmp(name, "[memory]") == 0) add_memory(s, f.args);
    break;
  case 'M':
    if (name) add_metadata(s, &f, name);
    break;
  }
}

/* ---- the document ---- */

static hone_status visit(void *user, const char *member, bool in_array, const hn_jvalue *v,
                         hone_error *error) {
  (void)error;
  state *s = user;
  hone_facts *facts = s->in->facts;
  if (!member || (in_array && strcmp(member, "traceEvents") == 0)) {
    add_event(s, v);
    return HONE_OK;
  }
  if (in_array) {
    const char *name = strcmp(member, "deviceProperties") == 0 ? hn_jtext(v, "name") : NULL;
    if (name && !s->in->meta.device) s->in->meta.device = hn_import_text(s->in, name);
    return HONE_OK;
  }
  static const char *const versions[] = {"schemaVersion", "cuda_runtime_version", "cuda_driver_version",
                                         "cupti_version", "hip_runtime_version",  "hip_driver_version",
                                         "torch_version", "pytorch_version"};
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
    if (strcmp(member, versions[i]) == 0 && v->text) hone_facts_add_version(facts, versions[i], v->text);
  static const char *const flags[] = {"record_shapes", "with_stack", "profile_memory", "with_flops",
                                      "with_modules"};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (strcmp(member, flags[i]) == 0 && v->number != 0)
      s->in->meta.flags =
          s->in->meta.flags ? hn_import_say(s->in, "%.400s %s", s->in->meta.flags, flags[i]) : flags[i];
  return HONE_OK;
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  state *s = in->state;
  s->in = in;
  if (!s->timeline && !(s->timeline = hn_timeline_create())) return hn_fail_memory(error, 0, "a trace");
  return hn_jread(source, &(hn_jreader){.visit = visit, .user = s}, error);
}

static void say_what_is_missing(const state *s, hn_import *in) {
  const hn_timeline *t = s->timeline;
  if (!hn_timeline_count(t, HN_EVENT_DEVICE) && hn_timeline_count(t, HN_EVENT_CALL))
    hone_facts_add_unmeasured(
        in->facts, "kernels",
        "the trace has calls of the accelerator but none of its work: it was recorded without "
        "the activity CUDA, or the counters of CUPTI took its place");
  if (s->ranges)
    hone_facts_add_unmeasured(in->facts, "time of profiler ranges",
                              hn_import_say(in,
                                            "%llu ranges of CUPTI carry counters; their durations are the "
                                            "profiler's, not the kernels'",
                                            (unsigned long long)s->ranges));
  if (s->broken)
    hone_facts_add_unmeasured(
        in->facts, "damaged events",
        hn_import_say(in, "%llu events have no usable time and are left out", (unsigned long long)s->broken));
  if (s->python)
    hone_facts_add_unmeasured(
        in->facts, "Python functions",
        hn_import_say(in, "%llu events of Python's stack are left out", (unsigned long long)s->python));
}

static hone_status finish(hn_import *in, hone_error *error) {
  state *s = in->state;
  in->meta.tool = "PyTorch profiler";
  in->meta.inner_clock = "the profiler's";
  if (hn_timeline_count(s->timeline, HN_EVENT_DEVICE) || hn_timeline_count(s->timeline, HN_EVENT_CALL))
    in->meta.backend = s->rocm ? "rocm" : s->xpu ? "xpu" : "cuda";
  else
    in->meta.backend = "cpu";
  double peak = s->peak_bytes[1] > 0 ? s->peak_bytes[1] : s->peak_bytes[0];
  if (peak > 0) hone_facts_set_memory(in->facts, &(hone_memory_facts){.actual_peak = (uint64_t)peak});
  for (size_t i = 0; i < s->metric_count; i++)
    hone_facts_add_counter(in->facts, &(hone_counter){s->metrics[i].name, "", -1, s->metrics[i].sum});
  say_what_is_missing(s, in);
  return hn_timeline_finish(s->timeline, in, error);
}

static void destroy(void *p) { hn_timeline_destroy(((state *)p)->timeline); }

const struct hn_importer hn_importer_pytorch = {
    .format = {"pytorch", "PyTorch's profiler (Kineto), export_chrome_trace: .json or .json.gz"},
    .state_size = sizeof(state),
    .sniff = sniff,
    .read = read,
    .finish = finish,
    .destroy = destroy};
