/* hone bench: how long one inference takes. */
#include "cli/cli.h"

#include <stdlib.h>

enum { WARMUPS = 5, RUNS = 50 };

/* Rows of input 0: what a throughput counts. */
static int64_t batch_of(const cli_session *s) {
  const hone_tensor_desc *d = hone_plan_inputs(s->plan) ? hone_plan_input_desc(s->plan, 0) : NULL;
  return d && d->rank > 0 && d->dim[0] > 0 ? d->dim[0] : 1;
}

/* What a device with memory of its own took for itself; all 0 where there is none. */
typedef struct device_times {
  bool known;
  hone_sample_stats steps; /* inputs resident */
  double h2d_ms, d2h_ms;   /* medians */
} device_times;

static json_t *device_json(const cli_session *s, const device_times *d) {
  if (!d->known) return json_null();
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "device_ms", cli_real(d->steps.p50),
                   "device_min_ms", cli_real(d->steps.min), "device_p95_ms", cli_real(d->steps.p95),
                   "device_cv", cli_real(d->steps.cv), "device_fps",
                   cli_real(1e3 * (double)batch_of(s) / d->steps.p50), "h2d_ms", cli_real(d->h2d_ms),
                   "d2h_ms", cli_real(d->d2h_ms));
}

/* What the seed of a report asks for by name; nothing runs before or after the network here. */
static void add_figures(json_t *doc, const hone_sample_stats *t, const device_times *d) {
  json_object_set_new(doc, "avg_latency_ms", cli_real(t->mean));
  json_object_set_new(doc, "median_latency_ms", cli_real(t->p50));
  json_object_set_new(doc, "p95_latency_ms", cli_real(t->p95));
  json_object_set_new(doc, "cv", cli_real(t->cv));
  json_object_set_new(doc, "h2d_ms_ratio", cli_real(d->known && t->mean > 0 ? d->h2d_ms / t->mean : 0));
  json_object_set_new(doc, "post_ms_ratio", cli_real(0));
}

static json_t *document(const cli_args *args, const cli_session *s, const char *path,
                        const hone_sample_stats *t, uint32_t warmups, const double *samples,
                        const device_times *d) {
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
  json_t *doc = json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:i, s:o, s:o, s:o}", "latency_ms", latency,
      "device_times", device_json(s, d), "throughput_fps", cli_real(1e3 * (double)batch_of(s) / t->mean),
      "memory_peak_mb", cli_real(cli_rss_peak_bytes() / 1048576), "load_ms", cli_real(s->load_ms), "threads",
      (json_int_t)cli_threads(s, args), "batch", (json_int_t)batch_of(s), "runs", (json_int_t)t->count,
      "warmups", (json_int_t)warmups, "steps", (json_int_t)hone_plan_steps(s->plan), "level",
      args->level < 0 ? 2 : (int)args->level, "precision_auto", cli_precision_json(args, &s->precision),
      "memory", memory, "samples_ms", raw);
  if (!doc) return NULL;
  add_figures(doc, t, d);
  cli_stamp(doc, args, path);
  return doc;
}

static int text(const cli_args *args, const cli_session *s, const char *path, const hone_sample_stats *t,
                uint32_t warmups, const device_times *d) {
  char rss[24];
  printf("%s on %s, %u threads, batch %lld\n", path, cli_device_name(args), cli_threads(s, args),
         (long long)batch_of(s));
  printf("latency     median %.3f ms   mean %.3f   p95 %.3f   min %.3f   CV %.3f%s\n", t->p50, t->mean,
         t->p95, t->min, t->cv, t->cv > 0.15 ? "  (unsteady: above 0.15)" : "");
  if (d->known)
    printf("device      median %.3f ms for the steps, inputs in place (%.1f a second); %.3f ms inputs in, "
           "%.3f ms "
           "outputs back\n",
           d->steps.p50, 1e3 * (double)batch_of(s) / d->steps.p50, d->h2d_ms, d->d2h_ms);
  printf("throughput  %.1f a second\n", 1e3 * (double)batch_of(s) / t->mean);
  printf("memory      %s at peak\n", cli_mib(cli_rss_peak_bytes(), rss));
  printf("load        %.1f ms\n", s->load_ms);
  cli_precision_text(args, &s->precision);
  printf("runs        %zu after %u warm-ups\n", t->count, warmups);
  return cli_flush();
}

/* Prints or keeps what was measured, or both. */
static int answer(const cli_args *args, const cli_session *s, const char *path, const hone_sample_stats *t,
                  uint32_t warmups, const double *samples, const device_times *d) {
  int64_t id = 0;
  json_t *doc = args->json || args->save ? document(args, s, path, t, warmups, samples, d) : NULL;
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
  int code = text(args, s, path, t, warmups, d);
  if (id && code == 0) printf("saved       as run %lld (hone history)\n", (long long)id);
  return code ? code : cli_flush();
}

static double median(double *v, uint32_t n) {
  hone_sample_stats t;
  return hone_stats_compute(v, n, &t) ? t.p50 : 0;
}

/* The same count of runs by the device's clock: whole ones for the copies, then the steps alone. */
static hone_status measure_device(cli_session *s, const cli_args *args, uint32_t runs, device_times *out,
                                  hone_error *error) {
  double *ms = calloc(runs, 3 * sizeof *ms);
  *out = (device_times){0};
  double h2d, steps, d2h, start = cli_now_ms();
  hone_error none = {0};
  if (!ms || hone_context_times(s->context, &h2d, &steps, &d2h, &none) == HONE_ERROR_UNSUPPORTED) {
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
  if (status == HONE_OK) {
    out->h2d_ms = median(ms + runs, copies);
    out->d2h_ms = median(ms + 2 * runs, copies);
    out->known = hone_stats_compute(ms, n, &out->steps);
  }
  free(ms);
  return status;
}

/* Runs until the count or the time is reached; *done counts the samples. */
static hone_status measure(cli_session *s, const cli_args *args, double *samples, uint32_t warmups,
                           uint32_t runs, uint32_t *done, hone_error *error) {
  double start = cli_now_ms();
  hone_status status = HONE_OK;
  *done = 0;
  for (uint32_t i = 0; i < warmups + runs && status == HONE_OK; i++) {
    if (*done && cli_remaining(start, args->max_seconds) <= 0) break; /* what was measured counts */
    double t = cli_now_ms();
    status = cli_session_run(s, args, error);
    t = cli_now_ms() - t;
    if (status == HONE_OK && i >= warmups) samples[(*done)++] = t;
    cli_progress("bench", i + 1, warmups + runs);
  }
  cli_progress_end();
  return status;
}

static int run(const cli_args *args) {
  if ((args->tag || args->commit) && !args->save && !args->json)
    return cli_error(HONE_ERROR_USAGE, "--tag and --commit belong to --save or --json");
  const char *path = args->rest.item[0];
  uint32_t warmups = args->warmup >= 0 ? (uint32_t)args->warmup : WARMUPS,
           runs = args->runs > 0 ? (uint32_t)args->runs : RUNS;
  uint32_t done = 0;
  cli_session s = {0};
  hone_error error = {0};
  hone_sample_stats stats;
  device_times device = {0};
  int code = 0;
  double *samples = calloc(runs, sizeof *samples);
  hone_status status = samples ? cli_session_open(&s, args, path, &error) : HONE_ERROR_MEMORY;
  if (status == HONE_OK) status = measure(&s, args, samples, warmups, runs, &done, &error);
  if (status == HONE_OK) status = measure_device(&s, args, runs, &device, &error);
  if (!samples)
    code = cli_error(HONE_ERROR_MEMORY, "out of memory for %u samples", runs);
  else if (status != HONE_OK)
    code = cli_report(&error);
  else if (!hone_stats_compute(samples, done, &stats))
    code = cli_error(HONE_ERROR_MEMORY, "out of memory");
  else
    code = answer(args, &s, path, &stats, warmups, samples, &device);
  free(samples);
  cli_session_close(&s);
  return code;
}

static const cli_option options[] = {
    {'n', "runs", CLI_COUNT, CLI_FIELD(runs), "N", "measured runs (50)"},
    {'w', "warmup", CLI_COUNT, CLI_FIELD(warmup), "N", "runs before that (5)"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE", "an input file (seeded random)"},
    {0, "save", CLI_FLAG, CLI_FIELD(save), NULL, "keep the run in the history (hone history)"},
    {0, "tag", CLI_TEXT, CLI_FIELD(tag), "WORD", "a name for it there"},
    {0, "commit", CLI_TEXT, CLI_FIELD(commit), "REV",
     "the revision that was measured (GITHUB_SHA, or git's HEAD here)"},
    CLI_OPT_RUN,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_bench = {
    "bench",
    "MODEL",
    "measure latency, throughput and memory",
    "--max-seconds ends measuring early, with the runs that finished. "
    "memory_peak_mb is the peak resident set in MiB. On a GPU the steps are also timed by its own\n"
    "clock, on inputs that lie there already (device_times).",
    options,
    1,
    1,
    run};
