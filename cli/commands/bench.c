/* hone bench: how long one inference takes. Under load: bench_load.c. */
#include "cli/commands/bench_load.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/median.h"
#include "cli/options/options.h"
#include "cli/options/preprocess.h"
#include "cli/options/precision.h"
#include "cli/reports/memory.h"
#include "cli/reports/profiling.h"
#include "cli/options/quiet.h"
#include "cli/options/session.h"
#include "cli/reports/stamp.h"
#include "cli/terminal/term.h"
#include "cli/options/version.h"
#include "cli/terminal/watch.h"
#include "cli/reports/steady.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARMUPS = 5, RUNS = 50, LONG_RUNS = 5000 };

/* What a device with memory of its own took for itself; all 0 where there is none. */
typedef struct device_times {
  bool known;
  hone_sample_stats steps; /* inputs resident */
  double h2d_ms, d2h_ms;   /* medians */
} device_times;

/* Hardware counters of the measured runs. */
typedef struct counters {
  bool asked;
  uint32_t runs; /* that they count; 0: not counted */
  hone_counts of;
  char why[320];
} counters;

/* Everything that one call of bench found out. */
typedef struct measured {
  uint32_t warmups, n;
  double *samples;
  hone_disturbance *seen; /* of each sample */
  hone_sample_stats stats;
  device_times device;
  counters counters;
  double celsius[2];   /* before and after */
  hone_steady *steady; /* NULL without --duration */
  char spread[400];    /* what slow runs have in common */
} measured;

static json_t *device_json(const cli_session *s, const device_times *d) {
  if (!d->known) return json_null();
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "device_ms", cli_real(d->steps.p50),
                   "device_min_ms", cli_real(d->steps.min), "device_p95_ms", cli_real(d->steps.p95),
                   "device_cv", cli_real(d->steps.cv), "device_fps",
                   cli_real(1e3 * (double)cli_batch(s) / d->steps.p50), "h2d_ms", cli_real(d->h2d_ms),
                   "d2h_ms", cli_real(d->d2h_ms));
}

/* A figure, or null and why it was not measured. */
static void set_or_why(json_t *doc, const char *key, json_t *value, const char *why) {
  char reason[64];
  json_object_set_new(doc, key, value ? value : json_null());
  if (value) return;
  snprintf(reason, sizeof reason, "%s_reason", key);
  json_object_set_new(doc, reason, cli_text(why));
}

static bool on_cpu(const cli_args *args) { return strcmp(cli_device_name(args), "cpu") == 0; }

/* Named as in the summary of report.json (insight/report/json_report.c); nothing runs before or after the
 * network here. */
static void add_figures(json_t *doc, const cli_args *args, const cli_session *s, const hone_sample_stats *t,
                        const device_times *d) {
  json_object_set_new(doc, "avg_latency_ms", cli_real(t->mean));
  json_object_set_new(doc, "median_latency_ms", cli_real(t->p50));
  json_object_set_new(doc, "p95_latency_ms", cli_real(t->p95));
  json_object_set_new(doc, "cv", cli_real(t->cv));
  json_t *copies = on_cpu(args)              ? cli_real(0) /* nothing is copied */
                   : d->known && t->mean > 0 ? cli_real(d->h2d_ms / t->mean)
                                             : NULL;
  set_or_why(doc, "h2d_ms_ratio", copies, "not measured: the device has no clock of its own");
  set_or_why(doc, "post_ms_ratio", NULL, "not measured: bench runs the network alone");
  const double rss = cli_rss_peak_bytes(), device = (double)hone_engine_device_peak(s->engine);
  json_object_set_new(doc, "memory_peak_mb", cli_real((on_cpu(args) ? rss : device) / 1048576));
  json_object_set_new(doc, "memory_peak_source",
                      cli_text(on_cpu(args) ? "peak resident set of the process" : "memory of the device"));
  json_object_set_new(doc, "host_rss_peak_mb", cli_real(rss / 1048576));
  hone_memory_stats memory;
  hone_error none = {0};
  if (hone_engine_memory(s->engine, &memory, &none) != HONE_OK) return;
  json_object_update_new(json_object_get(doc, "memory"), memory_json(&memory));
  hone_memory_stats_free(&memory);
}

/* [least, most], or null and why. */
static void add_temperature(json_t *doc, const cli_args *args, const measured *m) {
  double low, high;
  const bool read = m->steady ? steady_range(m->steady->temperature_c, m->steady->n, &low, &high)
                              : steady_range(m->celsius, 2, &low, &high);
  hone_system_sample now;
  hone_system_read(&now);
  const char *why = on_cpu(args) ? hone_system_unread(&now, "temperature") : "its sensors cannot be read";
  char reason[200];
  snprintf(reason, sizeof reason, "not measured: %s", *why ? why : "no reading succeeded");
  set_or_why(doc, "temperature_c_range", read ? json_pack("[o, o]", cli_real(low), cli_real(high)) : NULL,
             reason);
}

static json_t *counters_json(const counters *c) {
  if (!c->asked) return json_null();
  if (!c->runs) return json_pack("{s:s}", "not_measured", c->why);
  json_t *o = json_object();
#define X(name) json_object_set_new(o, #name, cli_real(c->of.name / c->runs));
  HONE_COUNTS(X)
#undef X
  return o;
}

static json_t *document(const cli_args *args, const cli_session *s, const char *path, const measured *m) {
  const hone_sample_stats *t = &m->stats;
  const double *samples = m->samples;
  const device_times *d = &m->device;
  const uint32_t warmups = m->warmups;
  uint64_t arena = 0, constants = 0, workspace = 0;
  hone_plan_memory(s->plan, &arena, &constants, &workspace);
  json_t *raw = json_array();
  for (size_t i = 0; i < t->count; i++) json_array_append_new(raw, cli_real(samples[i]));
  json_t *latency = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "median", cli_real(t->p50), "mean",
                              cli_real(t->mean), "p50", cli_real(t->p50), "p95", cli_real(t->p95), "min",
                              cli_real(t->min), "max", cli_real(t->max), "cv", cli_real(t->cv));
  json_t *memory = json_pack("{s:I, s:I, s:I, s:I}", "arena_bytes", (json_int_t)arena, "constant_bytes",
                             (json_int_t)constants, "workspace_bytes", (json_int_t)workspace,
                             "actual_peak_bytes", (json_int_t)hone_context_peak(s->context));
  json_t *doc = json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:o, s:o, s:o}",
                          "latency_ms", latency, "device_times", device_json(s, d), "throughput_fps",
                          cli_real(1e3 * (double)cli_batch(s) / t->mean), "load_ms", cli_real(s->load_ms),
                          "threads", (json_int_t)cli_threads(s, args), "batch", (json_int_t)cli_batch(s),
                          "slices", (json_int_t)hone_plan_slices(s->plan), "runs", (json_int_t)t->count,
                          "warmups", (json_int_t)warmups, "steps", (json_int_t)hone_plan_steps(s->plan),
                          "level", args->level < 0 ? 2 : (int)args->level, "precision_auto",
                          cli_precision_json(args, &s->precision), "memory", memory, "samples_ms", raw);
  if (!doc) return NULL;
  add_figures(doc, args, s, t, d);
  cli_stamp(doc, args, path);
  if (!args->precision) json_object_set_new(doc, "precision", json_string(hone_plan_precision(s->plan)));
  json_object_set_new(doc, "interrupted", json_boolean(cli_interrupted()));
  json_object_set_new(doc, "preprocess", cli_preprocess_of_inputs(args));
  json_object_set_new(doc, "spread", m->spread[0] ? cli_text(m->spread) : json_null());
  json_object_set_new(doc, "counters_per_run", counters_json(&m->counters));
  if (m->steady) json_object_set_new(doc, "stability", steady_json(m->steady));
  add_temperature(doc, args, m);
  return doc;
}

static void counters_text(const counters *c) {
  if (!c->asked) return;
  if (!c->runs) {
    cli_print("counters    not measured: %s\n", c->why);
    return;
  }
  char b[4][16];
  cli_print("counters    %s cycles a run, %s instructions (%.2f a cycle), %s misses of the last cache, %s "
            "mispredicted branches\n",
            cli_si(c->of.cycles / c->runs, b[0]), cli_si(c->of.instructions / c->runs, b[1]),
            c->of.instructions / c->of.cycles, cli_si(c->of.llc_misses / c->runs, b[2]),
            cli_si(c->of.branch_misses / c->runs, b[3]));
}

static void memory_line(const cli_args *args, const cli_session *s) {
  char peak[24], host[24], predicted[24], used[24];
  uint64_t arena = 0;
  hone_plan_memory(s->plan, &arena, NULL, NULL);
  cli_bytes(cli_rss_peak_bytes(), host);
  if (on_cpu(args))
    cli_print("memory      %s at peak", host);
  else
    cli_print("memory      %s of the device at peak, %s of the host",
              cli_bytes((double)hone_engine_device_peak(s->engine), peak), host);
  cli_print("; activations %s predicted, %s used\n", cli_bytes((double)arena, predicted),
            cli_bytes((double)hone_context_peak(s->context), used));
}

static void text(const cli_args *args, const cli_session *s, const char *path, const measured *m) {
  const hone_sample_stats *t = &m->stats;
  const device_times *d = &m->device;
  char slices[40] = "";
  if (hone_plan_slices(s->plan) > 1)
    snprintf(slices, sizeof slices, " in %u slices", hone_plan_slices(s->plan));
  cli_print("%s on %s, %u thread%s, batch %lld%s\n", path, cli_device_name(args), cli_threads(s, args),
            cli_s(cli_threads(s, args)), (long long)cli_batch(s), slices);
  cli_print("latency     median %.3f ms   mean %.3f   p95 %.3f   min %.3f   CV %.3f%s\n", t->p50, t->mean,
            t->p95, t->min, t->cv, t->cv > 0.15 ? "  (unsteady: above 0.15)" : "");
  if (d->known)
    cli_print("device      median %.3f ms for the steps, inputs in place (%.1f a second); %.3f ms inputs in, "
              "%.3f ms "
              "outputs back\n",
              d->steps.p50, 1e3 * (double)cli_batch(s) / d->steps.p50, d->h2d_ms, d->d2h_ms);
  cli_print("throughput  %.1f a second\n", 1e3 * (double)cli_batch(s) / t->mean);
  memory_line(args, s);
  cli_print("load        %.1f ms\n", s->load_ms);
  cli_precision_text(args, &s->precision);
  if (m->steady && m->steady->runs > t->count)
    cli_print("runs        %llu after %u warm-up%s; the latency above is of %zu of them, evenly spread\n",
              (unsigned long long)m->steady->runs, m->warmups, cli_s(m->warmups), t->count);
  else
    cli_print("runs        %zu after %u warm-up%s\n", t->count, m->warmups, cli_s(m->warmups));
  if (m->spread[0]) cli_print("spread      %s\n", m->spread);
  counters_text(&m->counters);
  if (m->steady) steady_text(m->steady);
}

/* Prints or keeps what was measured, or both. */
static int answer(const cli_args *args, const cli_session *s, const char *path, const measured *m) {
  int64_t id = 0;
  json_t *doc = args->json || args->save ? document(args, s, path, m) : NULL;
  if ((args->json || args->save) && !doc) return cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  if (args->save) {
    hone_error error = {0};
    if (cli_history_save(doc, &id, &error) != HONE_OK) {
      json_decref(doc);
      return cli_report(&error);
    }
  }
  if (args->json) {
    if (id) json_object_set_new(doc, "history_id", json_integer(id));
    return cli_print_json(doc);
  }
  json_decref(doc);
  text(args, s, path, m);
  if (id) cli_print("saved       as run %lld (hone history)\n", (long long)id);
  return cli_flush();
}

/* The same count of runs by the device's clock: whole ones for the copies, then the steps alone. */
static hone_status measure_device(cli_session *s, const cli_args *args, uint32_t runs, device_times *out,
                                  hone_error *error) {
  double *ms = calloc(runs, 3 * sizeof *ms);
  *out = (device_times){0};
  double h2d, steps, d2h, start = cli_now_ms();
  hone_error none = {0};
  if (!ms || hone_context_clock(s->context, true, &none) == HONE_ERROR_UNSUPPORTED) {
    free(ms);
    return HONE_OK;
  }
  hone_status status = HONE_OK;
  uint32_t copies = 0, n = 0;
  for (; copies < runs && status == HONE_OK; copies++) {
    if (copies && cli_remaining(start, args->max_seconds) <= 0) break;
    status = cli_session_run(s, args, error);
    if (status == HONE_OK) status = hone_context_times(s->context, &h2d, &steps, &d2h, error);
    ms[runs + copies] = h2d * 1e3;
    ms[2 * runs + copies] = d2h * 1e3;
  }
  for (; n < runs && status == HONE_OK; n++) {
    if (n && cli_remaining(start, args->max_seconds) <= 0) break;
    status = hone_context_repeat(s->context, &steps, error);
    ms[n] = steps * 1e3;
  }
  hone_context_clock(s->context, false, &none); // what follows is as a caller has it
  if (status == HONE_OK) {
    out->h2d_ms = copies ? cli_median(ms + runs, copies) : 0;
    out->d2h_ms = copies ? cli_median(ms + 2 * runs, copies) : 0;
    out->known = hone_stats_compute(ms, n, &out->steps);
  }
  free(ms);
  return status;
}

static hone_status out_of_memory(hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for samples"};
  return HONE_ERROR_MEMORY;
}

static hone_status warm_up(cli_session *s, const cli_args *args, uint32_t runs, hone_error *error) {
  hone_status status = HONE_OK;
  double start = cli_now_ms();
  for (uint32_t i = 0; i < runs && status == HONE_OK && cli_remaining(start, args->max_seconds) > 0; i++)
    status = cli_session_run(s, args, error);
  return status;
}

/* Ctrl-C ends the measuring, and what was measured counts. */
static hone_status kept_runs(hone_status status) {
  return status == HONE_ERROR_CANCELLED && cli_interrupted() ? HONE_OK : status;
}

/* Runs until the count or the time is reached; what was measured then counts. */
static hone_status measure(const cli_session *s, const cli_args *args, uint32_t runs, measured *m,
                           hone_error *error) {
  const hone_subject subject = cli_subject(s, args);
  const hone_status status =
      hone_runs_measure(&subject, runs, args->max_seconds, cli_watch(), m->samples, m->seen, &m->n, error);
  cli_progress_end();
  return m->n ? kept_runs(status) : status;
}

/* Of a long run's record: findings are shown with it, and their commands repeat the options. */
typedef struct owner {
  const cli_session *session;
  const cli_args *args;
  const char *path;
} owner;

static void describe(void *arg, hone_facts *facts) {
  const owner *o = arg;
  hone_facts_meta m = *hone_facts_get_meta(facts);
  m.hone_version = cli_hone_version();
  m.model = o->path;
  hone_facts_set_meta(facts, &m);
  cli_record_options(o->args, o->session, facts);
}

/* The same for so long, watching what moves. */
static hone_status measure_long(const cli_session *s, const cli_args *args, const char *path, double seconds,
                                uint32_t runs, measured *m, hone_error *error) {
  owner o = {s, args, path};
  hone_subject subject = cli_subject(s, args);
  subject.describe = describe;
  subject.arg = &o;
  const hone_steady_options options = {.seconds = seconds,
                                       .max_seconds = args->max_seconds,
                                       .samples = m->samples,
                                       .seen = m->seen,
                                       .most = runs,
                                       .watch = cli_watch()};
  const hone_status status = hone_steady_measure(&subject, &options, &m->n, m->steady, error);
  cli_progress_end();
  return status;
}

/* The measured part: a number of runs, or a time. */
static hone_status measure_all(cli_session *s, const cli_args *args, const char *path, double seconds,
                               uint32_t runs, hone_counting *counting, measured *m, hone_error *error) {
  hone_counts before = {0}, after = {0};
  hone_status status = warm_up(s, args, m->warmups, error);
  if (status != HONE_OK) return status;
  bool kept = args->json || args->save;
  m->celsius[0] = m->celsius[1] = kept ? hone_temperature(cli_device_name(args)) : (double)NAN;
  if (counting) hone_counting_read(counting, &before);
  if (seconds > 0) {
    m->steady = calloc(1, sizeof *m->steady);
    if (!m->steady) return out_of_memory(error);
    status = measure_long(s, args, path, seconds, runs, m, error);
  } else {
    status = measure(s, args, runs, m, error);
  }
  if (counting) {
    hone_counting_read(counting, &after);
#define X(name) m->counters.of.name = after.name - before.name;
    HONE_COUNTS(X)
#undef X
    m->counters.runs = m->steady ? (uint32_t)m->steady->runs : m->n;
  }
  if (kept) m->celsius[1] = hone_temperature(cli_device_name(args));
  if (status == HONE_OK && !hone_stats_compute(m->samples, m->n, &m->stats)) return out_of_memory(error);
  if (status == HONE_OK)
    hone_spread_explain(m->samples, m->seen, m->n, m->stats.p50, m->stats.cv, m->spread, sizeof m->spread);
  return status == HONE_OK && !cli_interrupted()
             ? kept_runs(measure_device(s, args, m->steady ? RUNS : runs, &m->device, error))
             : status;
}

static int end_early(const measured *m, uint32_t runs) {
  char kept[80];
  if (m->steady)
    snprintf(kept, sizeof kept, "the %llu runs until then count", (unsigned long long)m->steady->runs);
  else
    snprintf(kept, sizeof kept, "%u of %u runs count", m->n, runs);
  return cli_end_interrupted(kept);
}

static int run_plain(const cli_args *args, const char *path) {
  if (args->pageable)
    return cli_error(HONE_ERROR_USAGE,
                     "--pageable belongs to --scenario, --streams or --curve: runs alone read "
                     "ordinary memory unless --pinned is given");
  double seconds = args->duration ? steady_seconds(args->duration) : 0;
  if ((args->tag || args->commit) && !args->save && !args->json)
    return cli_error(HONE_ERROR_USAGE, "--tag and --commit belong to --save or --json");
  if (seconds < 0)
    return cli_error(HONE_ERROR_USAGE, "--duration wants a time such as 30s, 10m or 1h, got '%s'",
                     args->duration);
  if (seconds > 0 && args->runs > 0)
    return cli_error(HONE_ERROR_USAGE, "--runs and --duration exclude each other");
  uint32_t runs = seconds > 0 ? LONG_RUNS : args->runs > 0 ? (uint32_t)args->runs : RUNS;
  cli_session s = {0};
  hone_error error = {0};
  hone_counting *counting = NULL;
  measured m = {.warmups = args->warmup >= 0 ? (uint32_t)args->warmup : WARMUPS,
                .samples = calloc(runs, sizeof *m.samples),
                .seen = calloc(runs, sizeof *m.seen),
                .counters = {.asked = args->counters}};
  /* Before the engine starts its threads: counters follow only threads that begin later. */
  if (args->counters && hone_counting_start(&counting, &error) != HONE_OK)
    snprintf(m.counters.why, sizeof m.counters.why, "%s", error.what);
  hone_status status = m.samples && m.seen ? cli_session_open(&s, args, path, &error) : out_of_memory(&error);
  if (status == HONE_OK && args->pinned) status = cli_session_pin(&s, &error);
  if (status == HONE_OK) status = cli_quiet_wait(args, &error);
  if (status == HONE_OK) status = measure_all(&s, args, path, seconds, runs, counting, &m, &error);
  cli_hold(true); /* what is measured is told */
  cli_cancellable(NULL);
  int code = status == HONE_OK ? answer(args, &s, path, &m) : cli_report(&error);
  if (status == HONE_OK && code == 0 && cli_interrupted()) code = end_early(&m, runs);
  cli_hold(false);
  hone_counting_stop(counting);
  if (m.steady) hone_steady_free(m.steady);
  free(m.steady);
  free(m.samples);
  free(m.seen);
  cli_session_close(&s);
  return code;
}

static int run(const cli_args *args) {
  cli_load load;
  hone_error error = {0};
  if (cli_load_read(args, &load, &error) != HONE_OK) return cli_report(&error);
  const char *path = args->rest.item[0];
  return cli_load_asked(args) ? cli_bench_load(args, path, &load) : run_plain(args, path);
}

static const cli_option options[] = {
    {'n', "runs", CLI_SOME, CLI_FIELD(runs), "N", "measured runs (50)"},
    {'w', "warmup", CLI_COUNT, CLI_FIELD(warmup), "N", "runs before that (5)"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE", "an input file or number (seeded random)"},
    {0, "duration", CLI_TEXT, CLI_FIELD(duration), "TIME",
     "run for so long (30s, 10m, 1h) and watch latency, memory, temperature and clock"},
    {0, "counters", CLI_FLAG, CLI_FIELD(counters), NULL, "hardware counters of the processor"},
    {0, "save", CLI_FLAG, CLI_FIELD(save), NULL, "keep the run in the history (hone history)"},
    {0, "tag", CLI_TEXT, CLI_FIELD(tag), "WORD", "a name for it there"},
    {0, "commit", CLI_TEXT, CLI_FIELD(commit), "REV",
     "the revision that was measured (GITHUB_SHA, or git's HEAD here)"},
    CLI_OPT_LOAD,
    {0, "html", CLI_TEXT, CLI_FIELD(html), "FILE", "--curve: draw it on a page, too"},
    CLI_OPT_RUN,
    CLI_OPT_PASSES,
    CLI_OPT_PREPROCESS,
    CLI_OPT_ARRIVING,
    {0, "pinned", CLI_FLAG, CLI_FIELD(pinned), NULL,
     "inputs lie in pinned memory, which a GPU reads by itself; under load a sample is a whole batch"},
    {0, "pageable", CLI_FLAG, CLI_FIELD(pageable), NULL,
     "under load: a sample is a whole batch in ordinary memory"},
    CLI_OPT_QUIET,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_bench = {
    "bench",
    "MODEL",
    "measure latency, throughput and memory",
    "--max-seconds and Ctrl-C end measuring early, with the runs that finished. memory_peak_mb is the peak "
    "resident set in MiB, on a GPU the device's memory; there the steps are also timed by its own clock, on "
    "inputs that lie there already (device_times).",
    options,
    1,
    1,
    run};
