/* OpenVINO's benchmark_app (C++ and Python): benchmark_report and
 * benchmark_{average,detailed}_counters_report, as CSV or JSON. One run is up to two files: the report
 * (latencies) and the counters (layers). */
#include "insight/import/common/totals.h"
#include "insight/import/common/optype.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct skipped {
  const char *name, *type, *status;
};

typedef struct state {
  hn_import *in;
  hn_totals average, detailed;
  uint64_t requests; /* blocks of the detailed report */
  HN_VEC(struct skipped) not_run;
  /* the report */
  double median_ms, mean_ms, min_ms, max_ms, throughput, iterations;
  bool has_report;
  const char *failure;   /* what the benchmark says of why it failed, */
  uint64_t failure_line; /* and where; 0: in JSON */
} state;

static int sniff(const hn_sniff *s) {
  char first = hn_sniff_first(s);
  if (hn_sniff_has(s, "layerName") && hn_sniff_has(s, "execStatus") && hn_sniff_has(s, "layerType"))
    return 95;
  if (first == '{' && hn_sniff_has(s, "\"report_type\"") &&
      (hn_sniff_has(s, "_performance\"") || hn_sniff_has(s, "\"node_type\"")))
    return 95;
  /* A benchmark that failed writes no configuration. */
  if (first == '{' && hn_sniff_has(s, "\"execution_results\"") &&
      (hn_sniff_has(s, "\"configuration_setup\"") || hn_sniff_has(s, "\"cmd_options\"")))
    return 95;
  return hn_sniff_has(s, "Execution results") &&
                 (hn_sniff_has(s, "Configuration setup") || hn_sniff_has(s, "Command line parameters"))
             ? 95
             : 0;
}

static hone_status no_memory(hone_error *error) { return hn_fail_memory(error, 0, "a benchmark_app report"); }

/* ---- layers ---- */

/* "brgconv_avx512_amx_bf16" -> "bf16" */
static const char *dtype_of(const char *exec_type) {
  const char *last = exec_type ? strrchr(exec_type, '_') : NULL;
  return last ? hn_text_dtype(last + 1) : NULL;
}

static bool was_run(const char *status) { return !status || !strcasestr(status, "NOT_RUN"); }

typedef struct layer {
  const char *name, *status, *type, *exec;
  double ms;
} layer;

static hone_status add_layer(state *s, hn_totals *to, const layer *l, hone_error *error) {
  hn_import *in = s->in;
  if (!was_run(l->status)) {
    /* Listed once, from the first request. */
    if (to == &s->detailed && s->requests > 1) return HONE_OK;
    struct skipped row = {hn_import_text(in, l->name), hn_import_text(in, l->type),
                          hn_import_text(in, l->status)};
    return hn_vec_push(&s->not_run, row) ? HONE_OK : no_memory(error);
  }
  hn_total *total = hn_totals_get(to, in, l->name);
  if (!total) return no_memory(error);
  if (!total->count) {
    const char *type = l->type ? hn_optype_of_operator(l->type) : NULL;
    total->step.op_type = type ? type : hn_import_text(in, l->type);
    total->step.tactic = hn_import_text(in, l->exec);
    total->step.dtype = dtype_of(l->exec);
    total->step.is_reformat = hn_optype_is_reformat(type);
    if (total->step.is_reformat) total->kind = HONE_SPAN_REFORMAT;
  }
  return hn_totals_add(to, total, l->ms) ? HONE_OK : no_memory(error);
}

static hone_status read_counters(state *s, hn_source *source, hone_error *error) {
  hn_csv csv;
  hone_status status = hn_csv_open(&csv, source, error);
  int name = hn_csv_find(&csv, "layerName"), exec_status = hn_csv_find(&csv, "execStatus"),
      type = hn_csv_find(&csv, "layerType"), exec = hn_csv_find(&csv, "execType"),
      time = hn_csv_find_any(&csv, (const char *const[]){"realTime", "cpuTime", NULL});
  if (!status && (name < 0 || time < 0)) {
    status = hn_csv_fail(&csv, error, "the table lacks layers or times");
    hn_error_expected(error, "columns layerName and realTime");
  }
  double ms = hn_csv_unit_ns(&csv, time, 1e6) / 1e6;
  bool more = !status, open = false;
  /* A detailed report has a block a request, each ended by its total; an average one has one block. It may
   * also be the only one of a detailed report: then it is the same. */
  while (!status && more) {
    status = hn_csv_next(&csv, &more, error);
    if (status || !more) break;
    layer l = {hn_csv_text(&csv, name), hn_csv_text(&csv, exec_status), hn_csv_text(&csv, type),
               hn_csv_text(&csv, exec), hn_csv_number(&csv, time, -1) * ms};
    bool header = l.name && strcmp(l.name, "layerName") == 0;
    if (header || !l.name || strcasecmp(l.name, "Total") == 0) {
      open = false;
      continue;
    }
    if (!open) s->requests++;
    open = true;
    if (!(l.ms >= 0 && l.ms < 1e12))
      status = hn_csv_fail(&csv, error, "layer '%.80s' has no time, or one out of range", l.name);
    if (!status) status = add_layer(s, &s->detailed, &l, error);
  }
  hn_csv_close(&csv);
  return status;
}

static hone_status add_nodes(state *s, hn_totals *to, const hn_jvalue *request, hone_error *error) {
  const hn_jvalue *nodes = hn_jget(request, "nodes");
  hone_status status = HONE_OK;
  for (const hn_jvalue *v = nodes ? nodes->first : NULL; v && !status; v = v->next) {
    double ms = hn_jnumber(v, "real_time", hn_jnumber(v, "cpu_time", -1));
    layer l = {hn_jtext(v, "name"), hn_jtext(v, "status"), hn_jtext(v, "node_type"), hn_jtext(v, "exec_type"),
               ms};
    if (l.name && ms >= 0 && ms < 1e12) status = add_layer(s, to, &l, error);
  }
  return status;
}

/* ---- the report ---- */

static void read_value(state *s, const char *key, const char *text) {
  double value = 0;
  bool number = hn_text_count(text, &value) && value >= 0 && value < 1e12;
  hn_import *in = s->in;
  if (strcasestr(key, "latency") && !strcasestr(key, "group") && number) {
    s->has_report = true;
    if (strcasestr(key, "avg") || strcasestr(key, "average") || strcasestr(key, "mean"))
      s->mean_ms = value;
    else if (strcasestr(key, "min"))
      s->min_ms = value;
    else if (strcasestr(key, "max"))
      s->max_ms = value;
    else if (!strcasestr(key, "percentile"))
      s->median_ms = value;
  } else if (strcasecmp(key, "error") == 0 && *text) {
    s->failure = hn_import_text(in, text);
  } else if (strcasecmp(key, "throughput") == 0 && number) {
    s->has_report = true;
    s->throughput = value;
  } else if ((strcasecmp(key, "total number of iterations") == 0 || strcasecmp(key, "iterations_num") == 0) &&
             number)
    s->iterations = value;
  else if ((strcasecmp(key, "batch size") == 0 || strcasecmp(key, "batch_size") == 0) && number)
    in->meta.batch = value;
  else if ((strcasecmp(key, "number of parallel infer requests") == 0 || strcasecmp(key, "nireq") == 0) &&
           number)
    in->meta.streams = value;
  else if ((strcasecmp(key, "read model time (ms)") == 0 || strcasecmp(key, "compile model time (ms)") == 0 ||
            strcasecmp(key, "load network time (ms)") == 0 || strcasecmp(key, "read_model_time") == 0 ||
            strcasecmp(key, "compile_model_time") == 0) &&
           number)
    in->meta.load_ms += value;
  else if (strcasecmp(key, "-m") == 0 || strcasecmp(key, "topology") == 0) {
    if (!in->meta.model || key[0] == '-') in->meta.model = hn_import_text(in, text);
  } else if (strcasecmp(key, "target device") == 0 || strcasecmp(key, "target_device") == 0)
    in->meta.device = hn_import_text(in, text);
  else if (strcasecmp(key, "precision") == 0 && strcasecmp(text, "UNSPECIFIED") != 0)
    in->meta.precision = hn_text_dtype(text) ? hn_text_dtype(text) : hn_import_text(in, text);
  if (key[0] == '-')
    in->meta.flags = in->meta.flags ? hn_import_say(in, "%.600s %.40s %.200s", in->meta.flags, key, text)
                                    : hn_import_say(in, "%.40s %.200s", key, text);
}

static hone_status no_results(const state *s, hn_source *source, hone_error *error) {
  if (s->failure && s->failure_line)
    return hn_source_fail_line(source, error, s->failure_line, "the benchmark failed: %.160s", s->failure);
  if (s->failure)
    return hn_source_fail(source, error, hn_source_offset(source), "the benchmark failed: %.160s",
                          s->failure);
  return hn_source_fail_line(source, error, source->line, "the report holds no latency and no throughput");
}

static hone_status read_report(state *s, hn_source *source, hone_error *error) {
  char line[4096];
  size_t n = 0;
  for (int c = 0; c != HN_SOURCE_EOF;) {
    c = hn_source_peek(source);
    if (c != HN_SOURCE_EOF) source->at++;
    if (c != '\n' && c != HN_SOURCE_EOF) {
      if (n + 1 < sizeof line && c) line[n++] = (char)c;
      continue;
    }
    while (n && isspace((unsigned char)line[n - 1])) n--;
    line[n] = 0;
    char *value = strpbrk(line, ";");
    if (value) {
      *value++ = 0;
      value[strcspn(value, ";")] = 0;
      read_value(s, line, value);
      if (s->failure && !s->failure_line) s->failure_line = source->line;
    }
    n = 0;
    source->line++;
  }
  if (source->status) return source->status;
  return s->has_report ? HONE_OK : no_results(s, source, error);
}

static hone_status visit(void *user, const char *member, bool in_array, const hn_jvalue *v,
                         hone_error *error) {
  state *s = user;
  if (!member) return HONE_OK;
  if (strstr(member, "avg_performance") || strstr(member, "average_performance"))
    return add_nodes(s, &s->average, v, error);
  if (in_array && strstr(member, "detailed_performance")) {
    s->requests++;
    return add_nodes(s, &s->detailed, v, error);
  }
  bool report = strcmp(member, "cmd_options") == 0 || strcmp(member, "configuration_setup") == 0 ||
                strcmp(member, "execution_results") == 0;
  for (const hn_jvalue *m = report && v->kind == HN_JOBJECT ? v->first : NULL; m; m = m->next)
    if (m->text) read_value(s, m->key, m->text);
  return HONE_OK;
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  state *s = in->state;
  s->in = in;
  size_t n = hn_source_ahead(source, 65536);
  const hn_sniff start = {"", source->at, n};
  if (n && hn_sniff_first(&start) == '{') {
    const hone_status status = hn_jread(source, &(hn_jreader){.visit = visit, .user = s}, error);
    return !status && s->failure && !s->has_report ? no_results(s, source, error) : status;
  }
  return hn_sniff_has(&start, "layerName") ? read_counters(s, source, error) : read_report(s, source, error);
}

/* ---- both together ---- */

static hone_status add_whole(state *s, hone_error *error) {
  hn_total *whole = hn_totals_get(&s->average, s->in, "network");
  double ms = s->mean_ms > 0      ? s->mean_ms
              : s->median_ms > 0  ? s->median_ms
              : s->throughput > 0 ? 1e3 / s->throughput
                                  : 0;
  if (!whole || !hn_totals_add(&s->average, whole, ms)) return no_memory(error);
  hone_facts_add_unmeasured(s->in->facts, "layers",
                            "the counters were not given (benchmark_app -report_type average_counters or "
                            "detailed_counters)");
  return HONE_OK;
}

static void add_latencies(state *s) {
  hone_facts *facts = s->in->facts;
  const struct {
    const char *name;
    double ms;
  } values[] = {{"latency_median_ms", s->median_ms},
                {"latency_mean_ms", s->mean_ms},
                {"latency_min_ms", s->min_ms},
                {"latency_max_ms", s->max_ms}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    if (values[i].ms > 0)
      hone_facts_add_counter(facts, &(hone_counter){values[i].name, "ms", -1, values[i].ms});
  if (s->throughput > 0)
    hone_facts_add_counter(facts, &(hone_counter){"throughput_fps", "samples/s", -1, s->throughput});
  double wall = s->mean_ms > 0 ? s->mean_ms : s->median_ms;
  if (wall <= 0 || wall > 1e12) return;
  hone_facts_add_wall(facts, 0, (int64_t)(wall * 1e6));
  s->in->meta.outer_clock = "benchmark_app's mean latency";
}

static void add_not_run(state *s) {
  for (size_t i = 0; i < s->not_run.len; i++) {
    const struct skipped *row = &s->not_run.ptr[i];
    const char *type = row->type ? hn_optype_of_operator(row->type) : NULL;
    hone_node_fact node = {.name = row->name,
                           .op_type = type ? type : row->type,
                           .step = -1,
                           .fate = HONE_NODE_UNKNOWN,
                           .reason = row->status};
    hone_facts_add_node(s->in->facts, &node);
  }
}

static hone_status finish(hn_import *in, hone_error *error) {
  state *s = in->state;
  hn_totals *to = s->detailed.list.len ? &s->detailed : &s->average;
  hone_status status = HONE_OK;
  if (!to->list.len && s->has_report) status = add_whole(s, error);
  if (!status) status = hn_totals_write(to, in, to == &s->detailed ? s->requests : 1, NULL, error);
  if (status) return status;
  add_not_run(s);
  add_latencies(s);
  in->meta.tool = "OpenVINO benchmark_app";
  in->meta.backend = "cpu";
  if (in->meta.device && !strcasestr(in->meta.device, "CPU")) in->meta.backend = in->meta.device;
  in->meta.runs = s->iterations > 0 ? s->iterations : (double)s->requests;
  in->meta.inner_clock = "OpenVINO's performance counters";
  return HONE_OK;
}

static void destroy(void *p) {
  state *s = p;
  hn_totals_free(&s->average);
  hn_totals_free(&s->detailed);
  hn_vec_free(&s->not_run);
}

const struct hn_importer hn_importer_openvino = {
    .format = {"openvino",
               "OpenVINO benchmark_app: benchmark_report and benchmark_*_counters_report, .csv or .json"},
    .state_size = sizeof(state),
    .sniff = sniff,
    .read = read,
    .finish = finish,
    .destroy = destroy};
