/* ONNX Runtime's profiling JSON, 2019 to 1.30: an array of Chrome trace events in microseconds.
 *
 * - A run is a model_run event (else the executor's own). Node events belong to the run that contains them;
 *   what lies in none (initialisation, a run that was cut off) is kept outside of the runs.
 * - A node of a provider on an accelerator is only launched while its event lasts. With the provider's kernel
 *   events the device's time is theirs; without them the steps are marked as launches.
 * - In a session with an accelerator, nodes of the CPU provider are marked as host steps. */
#include "insight/import/import.h"

#include "base/error.h"
#include "insight/import/common/ops.h"
#include "insight/import/common/runlog.h"

#include <stdio.h>
#include <string.h>

enum { EVENTS_MOST = 1000000, DIMS = 16, BLUR_NS = 2000, SAME_MOST = 64, NAME_MOST = 1200 };

/* What the steps' table does not keep. */
typedef struct node {
  int64_t index; /* node_index; -1: not told */
  const char *provider;
  hone_step_fact step;
  int32_t number; /* in the facts' table, once it is there */
  bool copy_h2d, copy_d2h;
} node;

/* A node's execution, or (kernel) a device kernel that one launched. There may be a million. */
typedef struct event {
  int64_t start_ns, end_ns;
  const char *name; /* of a kernel */
  uint32_t node;    /* index; UINT32_MAX: none */
  int32_t lane;
  uint32_t launch;
  uint8_t kind; /* of a kernel: hone_span_kind */
  bool kernel;
} event;

/* Kernels are few and run often: their names and launches are kept once. */
typedef struct kernel {
  const char *name;
  hone_launch launch; /* the last one */
  uint32_t row;       /* of the facts' table; 0: none */
} kernel;

typedef struct state {
  hn_import *in;
  hn_source *source;
  HN_VEC(node *) nodes;
  HN_VEC(event) events;
  hn_map by_name; /* -> node index + 1 */
  hn_map kernels_by_name;
  HN_VEC(int64_t) threads; /* lane i is thread threads[i] */
  HN_VEC(int64_t) streams;
  hn_runlog log;
  size_t seen, kernels;
  HN_VEC(hone_span) executor_runs; /* used when there are no model_run events */
  double load_us, sub_threads, arena_peak;
  uint32_t last_node;
  bool failed;
} state;

static int sniff(const hn_sniff *s) {
  if (hn_sniff_first(s) != '[') return 0;
  if (hn_sniff_has(s, "\"session_initialization\"") || hn_sniff_has(s, "_kernel_time\"") ||
      hn_sniff_has(s, "\"model_loading_"))
    return 95;
  return hn_sniff_has(s, "\"cat\" : \"Session\"") || hn_sniff_has(s, "\"SequentialExecutor::Execute\"") ? 90
                                                                                                        : 0;
}

/* ---- what a node is ---- */

/* The i-th of [{"float":[1,3,224,224]}, ...]; returns its rank, 0 also when there is none. */
static size_t type_shape(const hn_jvalue *list, size_t i, int64_t *dims, const char **dtype) {
  const hn_jvalue *v = list && list->kind == HN_JARRAY ? list->first : NULL;
  for (; v && i; i--) v = v->next;
  *dtype = NULL;
  if (!v || v->kind != HN_JOBJECT || !v->first) return 0;
  *dtype = hn_text_dtype(v->first->key);
  size_t n = 0;
  for (const hn_jvalue *d = v->first->first; d && n < DIMS; d = d->next)
    if (d->kind == HN_JNUMBER && d->number > -2 && d->number < 1e15) dims[n++] = (int64_t)d->number;
  return n;
}

static const char *all_shapes(hn_import *in, const hn_jvalue *list) {
  if (!list || list->kind != HN_JARRAY || !list->count) return NULL;
  hn_str out = {0};
  for (size_t i = 0; i < list->count; i++) {
    int64_t dims[DIMS];
    const char *dtype;
    size_t n = type_shape(list, i, dims, &dtype);
    if (!n) continue; /* scalars of quantisation would only be noise */
    if (out.len) hn_str_putc(&out, ' ');
    hn_text_put_shape(&out, dims, n);
  }
  const char *text = hn_import_text(in, out.ptr);
  hn_str_free(&out);
  return text;
}

static uint64_t counted(double v) { return v > 0 && v < 1e18 ? (uint64_t)v : 0; }

static double elements(const int64_t *dims, size_t n) {
  double product = 1;
  for (size_t i = 0; i < n; i++) product *= dims[i] > 0 ? (double)dims[i] : 0;
  return product;
}

/* Channels and FLOPs of convolutions (NCHW, or NHWC where the output's last dimension is the weights' first)
 * and matrix products. */
static void product(const hn_jvalue *args, const char *op, hone_step_fact *step) {
  const hn_jvalue *in = hn_jget(args, "input_type_shape"), *out = hn_jget(args, "output_type_shape");
  int64_t x[DIMS], w[DIMS], y[DIMS];
  const char *dtype;
  const bool quantised = hn_text_starts(op, "QLinear");
  size_t rx = type_shape(in, 0, x, &dtype), rw = type_shape(in, quantised ? 3 : 1, w, &dtype);
  size_t ry = type_shape(out, 0, y, &dtype);
  if (strstr(op, "Conv") && rx > 2 && rw == rx && ry == rx) {
    const bool transposed = strstr(op, "Transpose") != NULL;
    const bool last = !transposed && y[ry - 1] == w[0] && y[1] != w[0];
    const int64_t ci = last ? x[rx - 1] : x[1], co = last ? y[ry - 1] : y[1];
    if (ci > 0 && ci <= INT32_MAX) step->channels_in = (int32_t)ci;
    if (co > 0 && co <= INT32_MAX) step->channels_out = (int32_t)co;
    step->flops = counted(2 * elements(w + 1, rw - 1) * (transposed ? elements(x, rx) : elements(y, ry)));
    step->layout = last ? "nhwc" : "nchw";
  } else if ((strstr(op, "MatMul") || strcmp(op, "Gemm") == 0 || strcmp(op, "FusedGemm") == 0) && rx >= 1 &&
             ry >= 1) {
    const int64_t k = x[rx - 1], n = y[ry - 1];
    if (k > 0 && k <= INT32_MAX) step->channels_in = (int32_t)k;
    if (n > 0 && n <= INT32_MAX) step->channels_out = (int32_t)n;
    step->flops = counted(2 * elements(y, ry) * (k > 0 ? (double)k : 0));
  } else if (hn_op_weight(op) == 1 && ry)
    step->flops = counted(elements(y, ry));
}

static void describe(state *s, node *n, const hn_jvalue *args, const char *op) {
  const hn_jvalue *in = hn_jget(args, "input_type_shape"), *out = hn_jget(args, "output_type_shape");
  int64_t dims[DIMS];
  const char *dtype;
  hone_step_fact *step = &n->step;
  size_t rank = type_shape(in, 0, dims, &dtype);
  if (!dtype) rank = type_shape(out, 0, dims, &dtype);
  if (rank > 1 && dims[0] > 0 && s->in->meta.batch == 0) s->in->meta.batch = (double)dims[0];
  step->op_type = hn_import_text(s->in, op);
  step->tactic = n->provider;
  /* hone names the arithmetic of both kinds of bytes i8. */
  step->dtype = dtype && strcmp(dtype, "u8") == 0 ? "i8" : dtype;
  step->shape_in = all_shapes(s->in, in);
  step->shape_out = all_shapes(s->in, out);
  step->weight_bytes = counted(hn_jnumber(args, "parameter_size", 0));
  step->bytes = counted(hn_jnumber(args, "activation_size", 0) + hn_jnumber(args, "output_size", 0)) +
                step->weight_bytes;
  if (op) product(args, op, step);
  n->copy_h2d = op && strcmp(op, "MemcpyFromHost") == 0;
  n->copy_d2h = op && strcmp(op, "MemcpyToHost") == 0;
}

/* Index of the node that an event speaks of; UINT32_MAX when out of memory. Names repeat in subgraphs: then
 * the node's index in its graph tells them apart. */
static uint32_t node_of(state *s, const char *name, const hn_jvalue *args) {
  const char *op = hn_jtext(args, "op_name");
  int64_t index = hn_jinteger(args, "node_index", -1);
  char label[NAME_MOST];
  if (*name)
    snprintf(label, sizeof label, "%s", name);
  else if (index >= 0)
    snprintf(label, sizeof label, "%.1000s_%lld", op ? op : "node", (long long)index);
  else
    snprintf(label, sizeof label, "%.1000s", op ? op : "node");
  for (int same = 2; same < SAME_MOST; same++) {
    uintptr_t known = (uintptr_t)hn_map_get(&s->by_name, label);
    if (!known) break;
    const node *n = s->nodes.ptr[known - 1];
    if (index < 0 || n->index < 0 || n->index == index) return (uint32_t)known - 1;
    snprintf(label, sizeof label, "%.1000s #%d", name, same);
  }
  node *n = HN_NEW(&s->in->arena, node);
  if (!n) return UINT32_MAX;
  const char *provider = hn_jtext(args, "provider");
  *n = (node){.index = index, .provider = hn_import_text(s->in, provider), .number = -1};
  n->step.anchor_node = -1;
  n->step.name = hn_import_text(s->in, label);
  if (!n->step.name) return UINT32_MAX;
  describe(s, n, args, op);
  if (!hn_vec_push(&s->nodes, n)) return UINT32_MAX;
  if (!hn_map_set(&s->by_name, n->step.name, (void *)(uintptr_t)s->nodes.len)) return UINT32_MAX;
  return (uint32_t)s->nodes.len - 1;
}

/* ---- events ---- */

#define LANE_OF(state, list, id) lane_of(&(state)->list.ptr, &(state)->list.len, &(state)->list.cap, id)

/* Position of an id in a list, added when it is new. */
static int32_t lane_of(int64_t **ids, size_t *count, size_t *room, int64_t id) {
  for (size_t i = *count; i-- > 0;)
    if ((*ids)[i] == id) return (int32_t)i;
  if (*count >= 4096 || !hn_vec_grow((void **)ids, room, *count + 1, sizeof **ids)) return 0;
  (*ids)[(*count)++] = id;
  return (int32_t)*count - 1;
}

/* The stem of "NAME_kernel_time"; NULL: another event. */
static const char *stem(const char *name, char *out, size_t size) {
  static const char suffix[] = "_kernel_time";
  if (!hn_text_ends(name, suffix)) return NULL;
  snprintf(out, size, "%.*s", (int)(strlen(name) - strlen(suffix)), name);
  return out;
}

/* The kernel of this name; NULL when out of memory. */
static kernel *kernel_of(state *s, const char *name) {
  kernel *k = hn_map_get(&s->kernels_by_name, name);
  if (k) return k;
  k = HN_NEW(&s->in->arena, kernel);
  if (!k || !(k->name = hn_import_text(s->in, name)) || !hn_map_set(&s->kernels_by_name, k->name, k))
    return NULL;
  return k;
}

static void add_kernel(state *s, hone_span span, const char *name, const hn_jvalue *args) {
  const char *parent = hn_jtext(args, "parent_name"), *op = hn_jtext(args, "op_name");
  if (!parent) parent = hn_jtext(args, "node_name");
  kernel *k = kernel_of(s, name);
  if (!k) {
    s->failed = true;
    return;
  }
  char parent_stem[NAME_MOST];
  const char *parent_node = parent ? stem(parent, parent_stem, sizeof parent_stem) : NULL;
  if (parent_node) parent = parent_node;
  event e = {.start_ns = span.start_ns,
             .end_ns = span.end_ns,
             .name = k->name,
             .node = UINT32_MAX,
             .lane = 1000 + LANE_OF(s, streams, hn_jinteger(args, "stream", 0)),
             .kind = HONE_SPAN_KERNEL,
             .kernel = true};
  uintptr_t known = parent ? (uintptr_t)hn_map_get(&s->by_name, parent) : 0;
  if (known)
    e.node = (uint32_t)known - 1;
  else if (!parent && s->last_node < s->nodes.len) { /* kernels stand behind the node that launched them */
    const char *last = s->nodes.ptr[s->last_node]->step.op_type;
    if (!op || (last && strcmp(last, op) == 0)) e.node = s->last_node;
  }
  if (strstr(name, "HtoD") || strstr(name, "HostToDevice"))
    e.kind = HONE_SPAN_COPY_H2D;
  else if (strstr(name, "DtoH") || strstr(name, "DeviceToHost"))
    e.kind = HONE_SPAN_COPY_D2H;
  else if (strstr(name, "emcpy"))
    e.kind = HONE_SPAN_COPY;
  hone_launch l;
  memset(&l, 0, sizeof l); /* compared as bytes */
#define DIM(field) l.field = (uint32_t)(hn_jinteger(args, #field, 0) & UINT32_MAX)
  DIM(grid_x), DIM(grid_y), DIM(grid_z), DIM(block_x), DIM(block_y), DIM(block_z);
#undef DIM
  if (l.block_x && (!k->row || memcmp(&k->launch, &l, sizeof l) != 0)) {
    k->row = hone_facts_add_launch(s->in->facts, &l);
    k->launch = l;
  }
  if (l.block_x) e.launch = k->row;
  s->kernels++;
  if (!hn_vec_push(&s->events, e)) s->failed = true;
}

static void add_node(state *s, hone_span span, const char *name, const hn_jvalue *args) {
  event e = {.start_ns = span.start_ns, .end_ns = span.end_ns, .lane = span.lane};
  e.node = s->last_node = node_of(s, name, args);
  const hn_jvalue *threads = hn_jget(hn_jget(args, "thread_scheduling_stats"), "sub_threads");
  if (threads && (double)threads->count > s->sub_threads) s->sub_threads = (double)threads->count;
  if (hn_jget(args, "thread_scheduling_stats") && s->in->meta.threads < s->sub_threads + 1)
    s->in->meta.threads = s->sub_threads + 1;
  double peak = hn_jnumber(args, "mem_in_use_peak", 0);
  if (peak > s->arena_peak) s->arena_peak = peak;
  if (e.node == UINT32_MAX || !hn_vec_push(&s->events, e)) s->failed = true;
}

static void add_session(state *s, hone_span span, const char *name) {
  const bool load = hn_text_starts(name, "model_loading") || strcmp(name, "session_initialization") == 0;
  if (strcmp(name, "model_run") == 0) {
    hn_runlog_add_run(&s->log, span.lane, span.start_ns, span.end_ns);
    return;
  }
  if (hn_text_ends(name, "Executor::Execute")) {
    if (!hn_vec_push(&s->executor_runs, span)) s->failed = true;
    return;
  }
  if (load) {
    s->load_us += (double)(span.end_ns - span.start_ns) / 1e3;
    span.iteration = -1;
  }
  span.kind = HONE_SPAN_HOST;
  span.name = hn_import_text(s->in, name);
  /* Parts of a run that are neither nodes nor the executor: only the loading is shown. */
  if (load) hn_runlog_add(&s->log, &span);
}

static hone_status visit(void *user, const char *member, bool in_array, const hn_jvalue *v,
                         hone_error *error) {
  state *s = user;
  if (member && !(in_array && strcmp(member, "traceEvents") == 0)) return HONE_OK;
  if (v->kind != HN_JOBJECT) return hn_source_fail(s->source, error, v->offset, "an event that is no object");
  s->seen++;
  const char *phase = hn_jtext(v, "ph"), *name = hn_jtext(v, "name"), *category = hn_jtext(v, "cat");
  if (phase && strcmp(phase, "X") != 0) return HONE_OK; /* names of threads and the like */
  int64_t start = 0, length = 0;
  if (!name || !category || !hn_jtime(v, "ts", 3, &start) || !hn_jtime(v, "dur", 3, &length)) {
    hone_status status = hn_source_fail(s->source, error, v->offset, "an event without %s",
                                        !name       ? "name"
                                        : !category ? "cat"
                                                    : "ts and dur");
    hn_error_expected(error, "a profile of ONNX Runtime: cat, name, ts, dur, args");
    return status;
  }
  if (length < 0) return hn_source_fail(s->source, error, v->offset, "'%.60s' ends before it starts", name);
  const hn_jvalue *args = hn_jget(v, "args");
  hone_span span = {.start_ns = start,
                    .end_ns = start + length,
                    .kind = HONE_SPAN_KERNEL,
                    .iteration = HN_RUNLOG_ASK,
                    .step = -1};
  const char *node_name;
  char node_stem[NAME_MOST];
  if (strcmp(category, "Kernel") == 0) {
    add_kernel(s, span, name, args);
    return s->failed ? hn_fail_memory(error, 0, "a profile of ONNX Runtime") : HONE_OK;
  }
  span.lane = LANE_OF(s, threads, hn_jinteger(v, "tid", 0));
  if (strcmp(category, "Session") == 0)
    add_session(s, span, name);
  else if (strcmp(category, "Node") != 0)
    return HONE_OK;
  else if ((node_name = stem(name, node_stem, sizeof node_stem)))
    add_node(s, span, node_name, args);
  else if (hn_text_ends(name, "_fence_before") || hn_text_ends(name, "_fence_after")) {
    span.kind = HONE_SPAN_HOST;
    span.name = "fences";
    hn_runlog_add(&s->log, &span);
  }
  return s->failed || s->log.failed ? hn_fail_memory(error, 0, "a profile of ONNX Runtime") : HONE_OK;
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  state *s = in->state;
  if (s->in) {
    hone_status status = hn_fail(error, HONE_ERROR_USAGE, "a profile of ONNX Runtime is a whole run already");
    hn_error_where(error, "%s", source->path);
    hn_error_hint(error, "give one file at a time");
    return status;
  }
  s->in = in;
  s->source = source;
  s->last_node = UINT32_MAX;
  const hn_jreader reader = {visit, s, NULL};
  hone_status status = hn_jread(source, &reader, error);
  if (!status && !s->events.len) {
    status = hn_source_fail(source, error, hn_source_offset(source), "the profile holds no node that ran");
    hn_error_hint(error,
                  "profile a session that runs the model at least once, and end it before copying the file");
  }
  return status;
}

/* ---- the end ---- */

static bool on_cpu(const char *provider) {
  static const char *const cpu[] = {"CPUExecutionProvider",     "DnnlExecutionProvider",
                                    "XnnpackExecutionProvider", "AclExecutionProvider",
                                    "ArmNNExecutionProvider",   "AzureExecutionProvider"};
  for (size_t i = 0; provider && i < sizeof cpu / sizeof *cpu; i++)
    if (strcmp(provider, cpu[i]) == 0) return true;
  return !provider; /* before providers were told there was only one */
}

static const char *backend_of(hn_import *in, const char *provider) {
  if (hn_text_starts(provider, "CUDA") || hn_text_starts(provider, "Tensorrt") ||
      hn_text_starts(provider, "NvTensorRT"))
    return "cuda";
  char word[64];
  snprintf(word, sizeof word, "%s", provider);
  char *end = strstr(word, "ExecutionProvider");
  if (end) *end = 0;
  for (char *p = word; *p; p++)
    if (*p >= 'A' && *p <= 'Z') *p = (char)(*p + 32);
  return hn_import_text(in, word);
}

/* The model's name of a node that the optimizer made of it: "fused Conv_3", "Conv_3_quant",
 * "Conv_3_token_17". */
static const char *origin_of(hn_import *in, const char *name) {
  size_t n = strlen(name), digits = n;
  while (digits && name[digits - 1] >= '0' && name[digits - 1] <= '9') digits--;
  if (digits < n && digits > 7 && memcmp(name + digits - 7, "_token_", 7) == 0) n = digits - 7;
  if (n > 6 && memcmp(name + n - 6, "_quant", 6) == 0) n -= 6;
  if (n > 6 && hn_text_starts(name, "fused ")) name += 6, n -= 6;
  return hn_arena_strndup(&in->arena, name, n);
}

static hone_status add_steps(state *s, bool accelerated, hone_error *error) {
  for (size_t i = 0; i < s->nodes.len; i++) {
    node *n = s->nodes.ptr[i];
    hone_node_fact fact = {origin_of(s->in, n->step.name), n->step.op_type, HONE_NODE_EXECUTED, (int32_t)i,
                           NULL};
    const bool cpu = on_cpu(n->provider), copy = n->copy_h2d || n->copy_d2h;
    int32_t index = hone_facts_add_node(s->in->facts, &fact);
    n->step.nodes = &index;
    n->step.node_count = 1;
    n->step.anchor_node = index;
    n->step.on_host = accelerated && cpu && !copy;
    n->step.is_launch = accelerated && !cpu && !copy && !s->kernels;
    n->step.is_reformat = n->step.op_type && hn_text_starts(n->step.op_type, "Reorder");
    if (n->step.shape_in && strchr(n->step.shape_in, '?')) s->in->meta.dynamic_shapes = 1;
    n->number = hone_facts_add_step(s->in->facts, &n->step);
    if (!fact.name || index < 0 || n->number < 0)
      return hn_fail_memory(error, 0, "a profile of ONNX Runtime");
  }
  return HONE_OK;
}

/* Which kind of time a node's event is, now that the providers are known. */
static void place(state *s, const event *e, bool accelerated, const bool *has_kernels) {
  const node *n = e->node < s->nodes.len ? s->nodes.ptr[e->node] : NULL;
  hone_span span = {.start_ns = e->start_ns,
                    .end_ns = e->end_ns,
                    .kind = e->kernel ? (hone_span_kind)e->kind : HONE_SPAN_KERNEL,
                    .lane = e->lane,
                    .iteration = HN_RUNLOG_ASK,
                    .step = -1,
                    .name = e->name,
                    .launch = e->launch};
  if (n && e->kernel && span.kind == HONE_SPAN_KERNEL) span.step = n->number;
  if (!n && e->kernel && span.kind == HONE_SPAN_KERNEL && span.name)
    span.step = hn_import_step(s->in, span.name, &(hone_step_fact){.op_type = "Kernel", .anchor_node = -1});
  if (n && !e->kernel) {
    const bool device = accelerated && !on_cpu(n->provider);
    span.step = n->number;
    span.kind = n->copy_h2d           ? HONE_SPAN_COPY_H2D
                : n->copy_d2h         ? HONE_SPAN_COPY_D2H
                : device              ? HONE_SPAN_HOST
                : n->step.is_reformat ? HONE_SPAN_REFORMAT
                                      : HONE_SPAN_KERNEL;
    if (has_kernels[e->node]) { /* the row of the step is its time on the device */
      span.step = -1;
      span.kind = HONE_SPAN_HOST;
      span.name = "launches";
      span.op_type = "Launch";
    }
  }
  hn_runlog_add(&s->log, &span);
}

static void name_lanes(state *s) {
  for (size_t i = 0; i < s->threads.len; i++)
    hone_facts_name_lane(s->in->facts, (int32_t)i,
                         hn_import_say(s->in, "thread %lld", (long long)s->threads.ptr[i]));
  for (size_t i = 0; i < s->streams.len; i++)
    hone_facts_name_lane(s->in->facts, 1000 + (int32_t)i,
                         hn_import_say(s->in, "stream %lld", (long long)s->streams.ptr[i]));
}

static void describe_run(state *s, bool accelerated) {
  hone_facts_meta *m = &s->in->meta;
  m->load_ms = s->load_us / 1e3;
  m->streams = (double)s->streams.len;
  m->runs = (double)s->log.runs.len;
  m->inner_clock = "ONNX Runtime's profiler, microseconds";
  if (!m->backend) m->backend = "cpu";
  if (accelerated && !s->kernels)
    hone_facts_add_unmeasured(
        s->in->facts, "time on the device",
        "node events of an accelerator's provider last as long as their launch; this build "
        "of ONNX Runtime recorded no kernels");
  if (s->arena_peak > 0)
    hone_facts_add_counter(s->in->facts, &(hone_counter){"arena_in_use_peak", "B", -1, s->arena_peak});
  if (s->seen >= EVENTS_MOST)
    hone_facts_add_unmeasured(s->in->facts, "events after the first million",
                              "ONNX Runtime drops them; what the last run lost is not known");
}

static hone_status finish(hn_import *in, hone_error *error) {
  state *s = in->state;
  bool accelerated = false;
  for (size_t i = 0; i < s->nodes.len; i++)
    if (!on_cpu(s->nodes.ptr[i]->provider)) {
      if (!accelerated) in->meta.backend = backend_of(in, s->nodes.ptr[i]->provider);
      accelerated = true;
    }
  hone_status status = add_steps(s, accelerated, error);
  if (status) return status;
  bool *has_kernels = HN_NEW_ARRAY(&in->arena, bool, s->nodes.len + 1);
  if (!has_kernels) return hn_fail_memory(error, s->nodes.len, "a profile of ONNX Runtime");
  for (size_t i = 0; i < s->events.len; i++)
    if (s->events.ptr[i].kernel && s->events.ptr[i].node < s->nodes.len)
      has_kernels[s->events.ptr[i].node] = true;
  if (!s->log.runs.len)
    for (size_t i = 0; i < s->executor_runs.len; i++) {
      const hone_span *r = &s->executor_runs.ptr[i];
      hn_runlog_add_run(&s->log, r->lane, r->start_ns, r->end_ns);
    }
  for (size_t i = 0; i < s->events.len; i++) place(s, &s->events.ptr[i], accelerated, has_kernels);
  hn_vec_free(&s->events); /* before the facts take as much */
  name_lanes(s);
  describe_run(s, accelerated);
  return hn_runlog_finish(&s->log, BLUR_NS, in->facts, error);
}

static void destroy(void *user) {
  state *s = user;
  hn_vec_free(&s->nodes);
  hn_vec_free(&s->events);
  hn_vec_free(&s->threads);
  hn_vec_free(&s->streams);
  hn_vec_free(&s->executor_runs);
  hn_map_free(&s->by_name);
  hn_map_free(&s->kernels_by_name);
  hn_runlog_free(&s->log);
}

const struct hn_importer hn_importer_onnxruntime = {
    .format = {"onnxruntime", "ONNX Runtime: the JSON of its profiler, 2019 to 1.30"},
    .state_size = sizeof(state),
    .sniff = sniff,
    .read = read,
    .finish = finish,
    .destroy = destroy};
