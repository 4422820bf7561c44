/* Ascend (msprof, and the profiler of torch_npu): op_summary, op_statistic, task_time, api_statistic,
 * fusion_op, kernel_details, msprof_*.json and trace_view.json. Files of one run are joined; work that
 * several of them tell of counts once: operators by op_summary or kernel_details, else by task_time, else by
 * the trace, else by op_statistic. fusion_op adds the original operators and bytes, api_statistic the host's
 * calls. */
#include "insight/import/importers/ascend.h"
#include "insight/import/common/ops.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLUR_NS = 1000, NODES_MOST = 256 };

static int sniff(const hn_sniff *s) {
  char first = hn_sniff_first(s);
  if (first == '[' || first == '{') {
    if (!hn_sniff_has(s, "\"ph\"")) return 0;
    if (hn_sniff_has(s, "Ascend Hardware") || hn_sniff_has(s, "async_npu") || hn_sniff_has(s, "AscendCL@") ||
        hn_sniff_has(s, "\"Task Type\""))
      return 95;
    /* torch_npu writes time stamps as texts. */
    if ((hn_sniff_has(s, "\"ts\": \"") || hn_sniff_has(s, "\"ts\":\"")) && hn_sniff_has(s, "aclnn"))
      return 95;
    return hn_text_starts(s->file, "msprof_") || hn_text_starts(s->file, "trace_view") ? 85 : 0;
  }
  return hn_ascend_is_table(s) ? 90 : 0;
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  hn_ascend *a = in->state;
  a->in = in;
  int first = hn_source_peek(source);
  while (first == ' ' || first == '\n' || first == '\r' || first == '\t') {
    source->at++;
    first = hn_source_peek(source);
  }
  return first == '[' || first == '{' ? hn_ascend_trace(a, source, error) : hn_ascend_table(a, source, error);
}

static hone_status out_of_memory(hone_error *error) {
  return hn_fail_memory(error, 0, "a profile of msprof");
}

/* ---- operators ---- */

/* The operators that were fused into one, as nodes of the network. */
static hone_status add_nodes(hn_ascend *a, const hn_ascend_op *op, int32_t step, int32_t nodes[NODES_MOST],
                             size_t *count, hone_step_fact *fact, hone_error *error) {
  uintptr_t known = (uintptr_t)hn_map_get(&a->fusion_of, op->name);
  *count = 0;
  if (!known) return HONE_OK;
  const hn_ascend_fusion *f = &a->fusions.ptr[known - 1];
  if (f->bytes > 0 && f->bytes < 1e18) fact->bytes = (uint64_t)f->bytes;
  if (f->weight_bytes > 0 && f->weight_bytes < 1e18) fact->weight_bytes = (uint64_t)f->weight_bytes;
  for (const char *p = f->originals; p && *p && *count < NODES_MOST;) {
    size_t n = strcspn(p, ";, ");
    if (n) {
      char *name = hn_arena_strndup(&a->in->arena, p, n);
      hone_node_fact node = {name, NULL, *count ? HONE_NODE_FUSED : HONE_NODE_EXECUTED, step, NULL};
      int32_t index = name ? hone_facts_add_node(a->in->facts, &node) : -1;
      if (index < 0) return out_of_memory(error);
      nodes[(*count)++] = index;
    }
    p += n;
    if (*p) p++;
  }
  return HONE_OK;
}

/* Mean by time; negative: not known. */
static double mean_share(const hn_ascend_share *s) { return s->us > 0 ? s->sum / s->us : -1; }

static void add_counter(hn_ascend *a, const hn_ascend_op *op, const char *name, const char *unit,
                        double value) {
  if (value >= 0 && isfinite(value))
    hone_facts_add_counter(a->in->facts, &(hone_counter){name, unit, op->number, value});
}

/* What the busiest pipe of a kind says is how near the operator is to what the core can do: bounds are told
 * by it as by the counters of GPUs. */
static void add_counters(hn_ascend *a, const hn_ascend_op *op) {
  enum { COMPUTE, MEMORY, NEITHER, UNITS };
  static const struct {
    const char *name;
    int unit;
  } pipes[] = {
#define X(id, counter, column, unit) {counter, unit},
      HN_ASCEND_PIPES(X)
#undef X
  };
  double busiest[UNITS] = {-1, -1, -1}, share[HN_ASCEND_PIPE_COUNT];
  for (int i = 0; i < HN_ASCEND_PIPE_COUNT; i++) {
    share[i] = mean_share(&op->pipe[i]);
    busiest[pipes[i].unit] = fmax(busiest[pipes[i].unit], share[i]);
  }
  add_counter(a, op, "compute_pct_of_peak", "%", 100 * busiest[COMPUTE]);
  add_counter(a, op, "memory_pct_of_peak", "%", 100 * busiest[MEMORY]);
  for (int i = 0; i < HN_ASCEND_PIPE_COUNT; i++) add_counter(a, op, pipes[i].name, "%", 100 * share[i]);
  add_counter(a, op, "cube_utilization", "%", mean_share(&op->cube_use));
  /* As msprof defines it: waiting for data against computing; above 1 is memory-bound. */
  const double told = mean_share(&op->bound), mte2 = share[HN_ASCEND_MTE2];
  add_counter(a, op, "memory_bound", "",
              told >= 0                           ? told
              : mte2 >= 0 && busiest[COMPUTE] > 0 ? mte2 / busiest[COMPUTE]
                                                  : -1);
}

/* Steps in the order of the table. A name that stands for several shapes gets the shapes behind it. */
static hone_status add_step(hn_ascend *a, hn_ascend_op *op, hone_error *error) {
  if (op->number >= 0) return HONE_OK;
  int32_t nodes[NODES_MOST];
  size_t count, steps;
  hone_facts_steps(a->in->facts, &steps);
  hone_step_fact fact = op->step;
  hone_status status = add_nodes(a, op, (int32_t)steps, nodes, &count, &fact, error);
  if (status) return status;
  fact.nodes = nodes;
  fact.node_count = count;
  fact.anchor_node = count ? nodes[0] : -1;
  const char *label = op->name;
  if (hn_map_has(&a->in->steps, label) && fact.shape_in)
    label = hn_import_say(a->in, "%.700s (%.200s)", op->name, fact.shape_in);
  if (label) label = hn_import_label(a->in, label);
  op->number = label ? hn_import_step(a->in, label, &fact) : -1;
  if (op->number < 0) return out_of_memory(error);
  if (fact.shape_in && strchr(fact.shape_in, '?')) a->in->meta.dynamic_shapes = 1;
  add_counters(a, op);
  return HONE_OK;
}

static int by_run(const void *pa, const void *pb) {
  int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
  return a < b ? -1 : a > b;
}

/* Rows with a Step Id or Infer ID: the ids in ascending order are the iterations. Without them: when every
 * operator occurs equally often, its n-th occurrence is of the n-th iteration; else there is one iteration.
 */
static bool number_runs(const hn_ascend *a, const hn_ascend_row *rows, size_t n, int32_t *iteration) {
  int64_t *ids = hn_calloc(n, sizeof *ids);
  uint32_t *seen = hn_calloc(a->ops.len + 1, sizeof *seen);
  size_t count = 0;
  bool ok = ids && seen;
  for (size_t i = 0; ok && i < n; i++)
    if (rows[i].run >= 0) ids[count++] = rows[i].run;
  if (ok && count) {
    qsort(ids, count, sizeof *ids, by_run);
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++)
      if (!distinct || ids[distinct - 1] != ids[i]) ids[distinct++] = ids[i];
    for (size_t i = 0; i < n; i++) {
      const int64_t *at = rows[i].run < 0 ? NULL : bsearch(&rows[i].run, ids, distinct, sizeof *ids, by_run);
      iteration[i] = at ? (int32_t)(at - ids) : -1;
    }
  } else if (ok) {
    for (size_t i = 0; i < n; i++) iteration[i] = (int32_t)seen[rows[i].op]++;
    uint32_t times = n ? seen[rows[0].op] : 0;
    bool equal = times > 1;
    for (size_t i = 0; i < n; i++) equal = equal && seen[rows[i].op] == times;
    /* The iterations must also follow each other. */
    for (size_t i = 1; i < n; i++) equal = equal && iteration[i - 1] <= iteration[i];
    for (size_t i = 0; i < n && !equal; i++) iteration[i] = 0;
  }
  hn_free(ids);
  hn_free(seen);
  return ok;
}

static int by_start(const void *pa, const void *pb) {
  const hn_ascend_row *a = pa, *b = pb;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
  if (a->length != b->length) return a->length < b->length ? -1 : 1;
  return a->op < b->op ? -1 : a->op > b->op;
}

/* The same task in several rows (tables that were put together): once. rows: sorted by_start. */
static size_t without_repeats(hn_ascend *a, hn_ascend_row *rows, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++)
    if (!kept || rows[i].length == 0 || by_start(&rows[kept - 1], &rows[i]) != 0) rows[kept++] = rows[i];
  if (kept < n)
    hone_facts_add_unmeasured(
        a->in->facts, "rows told twice",
        hn_import_say(a->in, "%zu of %zu rows repeat a task with its start and duration and count once",
                      n - kept, n));
  return kept;
}

/* Durations without starts: totals. */
static hone_status add_unstamped(hn_ascend *a, const hn_ascend_row *rows, size_t n, hone_error *error) {
  hone_step_stats *stats = HN_NEW_ARRAY(&a->in->arena, hone_step_stats, a->ops.len + 1);
  if (!stats) return out_of_memory(error);
  for (size_t i = 0; i < n; i++) {
    hone_step_stats *s = &stats[rows[i].op];
    const double ms = (double)rows[i].length / 1e6;
    hone_status status = add_step(a, a->ops.ptr[rows[i].op], error);
    if (status) return status;
    s->step = a->ops.ptr[rows[i].op]->number;
    s->kind = rows[i].kind;
    s->runs = 1;
    s->min_ms = !s->count || ms < s->min_ms ? ms : s->min_ms;
    s->max_ms = ms > s->max_ms ? ms : s->max_ms;
    s->total_ms += ms;
    s->count++;
  }
  for (size_t i = 0; i < a->ops.len; i++)
    if (stats[i].count) hone_facts_add_step_stats(a->in->facts, &stats[i]);
  return HONE_OK;
}

static hone_status add_rows(hn_ascend *a, hn_ascend_row *rows, size_t n, hone_error *error) {
  size_t stamped = 0;
  for (size_t i = 0; i < n; i++) stamped += rows[i].start != INT64_MIN;
  if (!stamped) return add_unstamped(a, rows, n, error);
  if (stamped < n)
    hone_facts_add_unmeasured(
        a->in->facts, "tasks without a start",
        hn_import_say(a->in, "%zu of %zu rows have no time of start and are left out", n - stamped, n));
  qsort(rows, n, sizeof *rows, by_start);
  rows += n - stamped;
  n = without_repeats(a, rows, stamped);
  int32_t *iteration = hn_calloc(n, sizeof *iteration);
  hone_status status = iteration && number_runs(a, rows, n, iteration) ? HONE_OK : out_of_memory(error);
  hn_runlog log = {0};
  for (size_t i = 0; i < n && !status; i++) {
    hn_ascend_op *op = a->ops.ptr[rows[i].op];
    status = add_step(a, op, error);
    hn_runlog_add(&log, &(hone_span){.start_ns = rows[i].start,
                                     .end_ns = rows[i].start + rows[i].length,
                                     .kind = rows[i].kind,
                                     .lane = (int32_t)rows[i].lane,
                                     .iteration = iteration[i],
                                     .step = op->number});
    if (iteration[i] + 1 > a->meta.runs) a->meta.runs = iteration[i] + 1;
  }
  if (!status) status = hn_runlog_finish(&log, BLUR_NS, a->in->facts, error);
  hn_runlog_free(&log);
  hn_free(iteration);
  for (size_t i = 0; i < a->lanes.len; i++)
    hone_facts_name_lane(a->in->facts, (int32_t)i,
                         hn_import_say(a->in, "NPU %lld stream %lld", (long long)(a->lanes.ptr[i] >> 32),
                                       (long long)(a->lanes.ptr[i] & UINT32_MAX)));
  a->meta.streams = (double)a->lanes.len;
  return status;
}

/* ---- totals ---- */

static hone_status add_totals(hn_ascend *a, const hn_ascend_total *rows, size_t n, const char *level,
                              hone_error *error) {
  for (size_t i = 0; i < n; i++) {
    const hn_ascend_total *t = &rows[i];
    if (level && (!t->level || strcmp(t->level, level) != 0)) continue;
    const char *mapped = level ? t->level : hn_op_of_word(t->name);
    hone_step_fact fact = {.op_type = mapped ? mapped : t->name,
                           .tactic = t->type,
                           .is_reference = t->type && strcmp(t->type, "AI_CPU") == 0,
                           .is_reformat = !level && strcmp(t->name, "TransData") == 0,
                           .anchor_node = -1};
    const char *label = hn_import_label(a->in, t->name);
    hone_step_stats stats = t->stats;
    stats.step = label ? hn_import_step(a->in, label, &fact) : -1;
    stats.kind = level ? HONE_SPAN_HOST : HONE_SPAN_RUN;
    if (stats.step < 0) return out_of_memory(error);
    hone_facts_add_step_stats(a->in->facts, &stats);
  }
  return HONE_OK;
}

/* Levels of API calls lie inside each other (acl calls runtime): only the outermost one adds up. */
static const char *outer_level(const hn_ascend *a) {
  static const char *const order[] = {"acl", "model", "node", "communication", "hccl", "runtime"};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    for (size_t k = 0; k < a->apis.len; k++)
      if (a->apis.ptr[k].level && strcmp(a->apis.ptr[k].level, order[i]) == 0) return a->apis.ptr[k].level;
  return a->apis.len && a->apis.ptr[0].level ? a->apis.ptr[0].level : NULL;
}

static void add_api_counters(hn_ascend *a) {
  for (size_t i = 0; i < a->apis.len; i++) {
    const hn_ascend_total *t = &a->apis.ptr[i];
    const char *name =
        hn_import_say(a->in, "%.200s%s%.700s", t->level ? t->level : "", t->level ? " " : "api ", t->name);
    hone_facts_add_counter(a->in->facts, &(hone_counter){name, "ms", -1, t->stats.total_ms});
  }
}

/* ---- joining ---- */

static hone_status nothing(const hn_ascend *a, hone_error *error) {
  hone_status status = hn_fail(error, HONE_ERROR_INPUT,
                               a->has_fusions ? "fusion_op says what was fused, not how long it takes"
                                              : "the tables hold no task that was timed");
  hn_error_hint(error, "add op_summary_*.csv or kernel_details.csv of the same run");
  return status;
}

static hone_status finish(hn_import *in, hone_error *error) {
  hn_ascend *a = in->state;
  a->in = in;
  in->meta = a->meta;
  in->meta.opt_level = -1;
  in->meta.backend = "ascend";
  in->meta.inner_clock = "msprof";
  hone_status status;
  bool apis = false;
  if (a->rows.len)
    status = add_rows(a, a->rows.ptr, a->rows.len, error);
  else if (a->tasks.len)
    status = add_rows(a, a->tasks.ptr, a->tasks.len, error);
  else if (a->trace)
    return hn_timeline_finish(a->trace, in, error);
  else if (a->types.len)
    status = add_totals(a, a->types.ptr, a->types.len, NULL, error);
  else if (a->apis.len) {
    apis = true;
    status = add_totals(a, a->apis.ptr, a->apis.len, outer_level(a), error);
  } else
    status = nothing(a, error);
  if (status) return status;
  in->meta.runs = a->meta.runs;
  in->meta.streams = a->meta.streams;
  if (!apis) add_api_counters(a);
  if (a->trace)
    hone_facts_add_unmeasured(
        in->facts, "host events of the trace",
        "the table of operators tells of the same work and more of each; the trace is left out");
  return HONE_OK;
}

static void destroy(void *user) {
  hn_ascend *a = user;
  hn_vec_free(&a->ops);
  hn_vec_free(&a->rows);
  hn_vec_free(&a->tasks);
  hn_vec_free(&a->types);
  hn_vec_free(&a->apis);
  hn_vec_free(&a->fusions);
  hn_vec_free(&a->lanes);
  hn_map_free(&a->by_signature);
  hn_map_free(&a->fusion_of);
  hn_timeline_destroy(a->trace);
}

const struct hn_importer hn_importer_ascend = {
    .format = {"ascend",
               "msprof and torch_npu: op_summary, kernel_details, op_statistic, task_time, traces (joined)"},
    .state_size = sizeof(hn_ascend),
    .sniff = sniff,
    .read = read,
    .finish = finish,
    .destroy = destroy};
