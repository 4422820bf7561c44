/* hone MODEL: measure, explain, change, prove, measure again, report. */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARMUPS = 3, RUNS = 30, FIRST_RUNS = 20 };
#define PROFILE_SECONDS 12.0 /* for both profiles */
#define FIRST_SECONDS 5.0
#define VERIFY_SECONDS 12.0

typedef struct loop {
  const cli_args *args;
  const char *path, *folder;
  cli_session session, baseline;
  cli_profile before, after;
  hone_findings *findings;
  hone_findings *left; /* of the plan that was made */
  cli_profile today;   /* --baseline: what runs today */
  hone_comparison *comparison;
  hone_model *optimized;
  hone_verify_result verdict;
  hone_rehearsal rehearsal;
  cli_profile first; /* of the model as it is, before anything was changed */
  double predicted_pct, predicted_ms;
  char predicted_at[32]; /* UTC */
  char predicted_by[240];
  double start_ms;
  size_t made; /* of the folder's path: cli_drop_folder */
} loop;

/* Goes on to the next step, unless the last one failed or --max-seconds is spent: a report without its last
 * steps would be another one than was asked for. */
static hone_status next(const loop *l, const char *text, hone_status status, hone_error *error) {
  if (status != HONE_OK) return status;
  if (l->args->verbose) cli_note("%s", text);
  cli_progress(text, 0, 0);
  if (cli_remaining(l->start_ms, l->args->max_seconds) > 0) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_BUDGET};
  snprintf(error->what, sizeof error->what, "--max-seconds %g was spent before the step '%s'",
           l->args->max_seconds, text);
  snprintf(error->where, sizeof error->where, "%.200s", l->path);
  snprintf(error->hint, sizeof error->hint, "give more, or hone profile, which keeps what it has measured");
  return HONE_ERROR_BUDGET;
}

static void print_inspection(const loop *l) {
  hone_inspection in;
  if (l->args->json || hone_model_inspect(hone_plan_model(l->session.plan), &in, NULL) != HONE_OK) return;
  char a[16], b[16], c[24], d[16];
  cli_progress_end();
  cli_print("%s: %u nodes, %sFLOP, %s parameters, %sB of memory access, %s peak memory\n\n", l->path,
            in.n_nodes, cli_si(in.flops, a), cli_si(in.params, b), cli_si(in.bytes, d),
            cli_mib(in.peak_memory_bytes, c));
  hone_inspection_free(&in);
}

static int level_of(const loop *l) { return l->args->level < 0 ? 2 : (int)l->args->level; }

static bool verify_progress(void *arg, uint32_t done, uint32_t total) {
  (void)arg;
  cli_progress("verify", done, total);
  return !cli_interrupted();
}

static hone_status prove(loop *l, hone_error *error) {
  const cli_args *a = l->args;
  cli_precision *precision = &l->session.precision;
  hone_status status = level_of(l) < 2 ? HONE_OK
                                       : cli_precision_make(a, l->session.model, l->session.bindings,
                                                            l->session.n_bindings, precision, error);
  if (status != HONE_OK) return status;
  hone_verify_options o = {.inputs = (uint32_t)a->count,
                           .seed = (uint64_t)a->seed,
                           .max_seconds = VERIFY_SECONDS,
                           .threads = (uint32_t)a->threads,
                           .batch = a->batch,
                           .bindings = l->session.bindings,
                           .n_bindings = l->session.n_bindings,
                           .level = level_of(l),
                           .device = a->device,
                           .precision = precision->name,
                           .f32_nodes = (const char *const *)precision->choice.f32_nodes,
                           .n_f32_nodes = precision->choice.n_f32_nodes,
                           .progress = verify_progress};
  cli_cancellable(NULL); /* nothing is being written: Ctrl-C may end the process */
  status = hone_verify(l->session.model, l->optimized, &o, &l->verdict, error);
  cli_progress_end();
  return status;
}

static hone_status rewrite(loop *l, hone_error *error) {
  hone_optimize_options o = {.level = level_of(l), .passes = l->args->passes};
  return hone_model_optimize(l->session.model, &o, &l->optimized, NULL, error);
}

/* Peak of resident memory while this plan alone is there and runs. */
static hone_status alone(loop *l, double *rss, hone_error *error) {
  hone_status status = cli_session_run(&l->session, l->args, error);
  *rss = cli_rss_peak_bytes();
  return status;
}

/* Before and after in alternation: the second plan lives beside the first one. */
static hone_status measure(loop *l, double rss_before, double rss_after, hone_error *error) {
  hone_status status = cli_session_fork(&l->session, l->args, 0, &l->baseline, error);
  cli_profile_plan plans[2] = {{&l->baseline, 0, rss_before, NULL, NULL, false},
                               {&l->session, level_of(l), rss_after, NULL, NULL, false}};
  cli_profile made[2] = {0};
  if (status == HONE_OK)
    status = cli_profile_make(plans, 2, l->args, l->path, WARMUPS, RUNS, PROFILE_SECONDS, made, error);
  l->before = made[0];
  l->after = made[1];
  cli_session_close(&l->baseline);
  return status;
}

static hone_report_input prediction_input(const loop *l) {
  return (hone_report_input){.baseline = l->first.profile,
                             .findings = l->findings,
                             .has_prediction = true,
                             .predicted_gain_pct = l->predicted_pct,
                             .predicted_after_ms = l->predicted_ms,
                             .prediction_made = l->predicted_at,
                             .prediction_basis = l->predicted_ms > 0 ? l->predicted_by : NULL};
}

/* What the forecast rests on, and what it cost. */
static void say_basis(loop *l, const hone_forecast *f) {
  const hone_rehearsal *r = &l->rehearsal;
  if (r->timed)
    snprintf(l->predicted_by, sizeof l->predicted_by,
             "%.0f %% of it measured on this machine: %u of %u new steps timed on their own (in %.1f s), "
             "what stays "
             "as in the profile; the rest by cost models, scaled by what the same kernels took",
             f->seen_pct, r->timed, r->steps, r->seconds);
  else
    snprintf(l->predicted_by, sizeof l->predicted_by,
             "cost models of the plan that was not built yet, scaled by the measured profile");
}

/* Says what the change will bring, and writes it down, before there is anything that could be measured. */
static hone_status predict(loop *l, double rss, hone_error *error) {
  cli_profile_plan plan = {&l->session, 0, rss, NULL, NULL, false};
  hone_forecast forecast;
  char path[4096 + 32];
  time_t now;
  struct tm t;
  hone_status status =
      cli_profile_make(&plan, 1, l->args, l->path, WARMUPS, FIRST_RUNS, FIRST_SECONDS, &l->first, error);
  if (status == HONE_OK)
    status = cli_session_preview(&l->session, l->args, level_of(l), l->first.facts, &l->rehearsal, error);
  if (status == HONE_OK) status = cli_diagnose(l->args, l->first.profile, &l->findings, error);
  if (status != HONE_OK) return status;
  l->predicted_pct = hone_findings_predict(l->findings, HONE_REMEDY_OPTIMIZER);
  if (hone_forecast_make(l->first.profile, &forecast)) {
    l->predicted_pct = forecast.gain_pct;
    l->predicted_ms = forecast.after_ms;
    say_basis(l, &forecast);
  }
  if (isnan(l->predicted_pct) || isnan(forecast.gain_pct)) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for the prediction"};
    return error->status;
  }
  now = time(NULL);
  gmtime_r(&now, &t);
  strftime(l->predicted_at, sizeof l->predicted_at, "%Y-%m-%dT%H:%M:%SZ", &t);
  hone_report_input in = prediction_input(l);
  status = cli_make_folder(l->folder, &l->made, error);
  snprintf(path, sizeof path, "%s/prediction.json", l->folder);
  return status == HONE_OK ? cli_file_report(path, &in, HONE_REPORT_FINDINGS_JSON, error) : status;
}

/* What the new plan's steps really took is what hone knows of their kernels from now on. Beside busy
 * neighbours a run says nothing of the kernels. */
static hone_status learn(const loop *l, hone_error *error) {
  const hone_profile *p = l->after.profile;
  const uint32_t n = hone_plan_steps(l->session.plan);
  size_t counters;
  const hone_counter *c = hone_facts_counters(l->after.facts, &counters);
  bool quiet = false;
  for (size_t i = 0; i < counters; i++)
    quiet |= strcmp(c[i].name, "others_cpu") == 0 && c[i].value <= 100 * HONE_ROOFS_QUIET;
  if (!quiet || p->filtered) return HONE_OK;
  double *seconds = calloc(n + 1, sizeof *seconds);
  hone_status status = seconds ? HONE_OK : HONE_ERROR_MEMORY;
  for (size_t i = 0; seconds && i < p->layer_count; i++)
    if (p->layers[i].step >= 0 && (uint32_t)p->layers[i].step < n)
      seconds[p->layers[i].step] = p->layers[i].stats.p50 * 1e-3;
  if (status == HONE_OK) status = hone_kernels_learn(l->session.plan, seconds, n, NULL, error);
  free(seconds);
  return status;
}

/* Where nothing can be written, nothing needs to be measured. Nothing stays until there is something to
 * write: Ctrl-C would leave an empty folder. */
static hone_status try_folder(const loop *l, hone_error *error) {
  size_t made;
  const hone_status status = cli_make_folder(l->folder, &made, error);
  if (status == HONE_OK) cli_drop_folder(l->folder, made);
  return status;
}

static void hint_of_folder(const loop *l, hone_error *error) {
  if (error->status != HONE_ERROR_IO || error->hint[0] ||
      strncmp(error->where, l->folder, strlen(l->folder)) != 0)
    return;
  snprintf(error->hint, sizeof error->hint, "--output-dir DIR writes the report elsewhere");
}

/* The loop itself, up to the files. */
static hone_status work(loop *l, hone_error *error) {
  if (hone_plan_is_saved(l->path)) {
    *error = (hone_error){.status = HONE_ERROR_USAGE};
    snprintf(error->what, sizeof error->what,
             "a saved plan cannot be made faster: give the model that it was made of");
    snprintf(error->where, sizeof error->where, "%.200s", l->path);
    snprintf(error->hint, sizeof error->hint, "hone run, bench, profile and verify take it");
    return HONE_ERROR_USAGE;
  }
  cli_args base = *l->args;
  double rss_before = 0, rss_after = 0;
  char last[4096 + 32];
  base.level = 0;
  snprintf(last, sizeof last, "%.4096s/optimized.onnx", l->folder);
  hone_status status = cli_keep_inputs(l->args, last, error);
  if (status == HONE_OK && l->args->baseline)
    status = cli_import(l->args, &l->args->baseline, 1, &l->today, error);
  status = next(l, "load", status, error);
  if (status == HONE_OK) status = cli_session_open(&l->session, &base, l->path, error);
  if (status == HONE_OK) status = try_folder(l, error);
  if (status != HONE_OK) return status;
  print_inspection(l);
  status = alone(l, &rss_before, error);
  status = next(l, "diagnose", status, error);
  if (status == HONE_OK) status = predict(l, rss_before, error);
  status = next(l, "optimize", status, error);
  if (status == HONE_OK) status = rewrite(l, error);
  status = next(l, "verify", status, error);
  if (status == HONE_OK) status = prove(l, error);
  if (status != HONE_OK) return status;
  hone_model_release(
      l->optimized); /* made again when it is written: the memory that is measured shall not hold it */
  l->optimized = NULL;
  status = next(l, "profile", status, error);
  if (status == HONE_OK) status = cli_session_replan(&l->session, l->args, level_of(l), error);
  if (status == HONE_OK) status = alone(l, &rss_after, error);
  if (status == HONE_OK) status = measure(l, rss_before, rss_after, error);
  if (status == HONE_OK) status = learn(l, error);
  if (status == HONE_OK)
    status = hone_compare(l->before.profile, l->after.profile, NULL, &l->comparison, error);
  if (status == HONE_OK) status = cli_diagnose(l->args, l->after.profile, &l->left, error);
  if (status != HONE_OK) return status;
  return hone_findings_measure(l->findings, l->before.profile, l->after.profile, error);
}

static hone_report_input report_input(const loop *l, hone_report_verdict *verdict) {
  const hone_verify_result *r = &l->verdict;
  *verdict = (hone_report_verdict){.verdict = cli_verdict_name(r->verdict),
                                   .inputs = r->inputs,
                                   .max_abs = r->max_abs,
                                   .max_rel = r->max_rel,
                                   .tolerance = r->tolerance,
                                   .first_different_node =
                                       r->first_different_node[0] ? r->first_different_node : NULL,
                                   .note = r->reason[0] ? r->reason : r->reference};
  hone_report_input in = prediction_input(l);
  in.baseline = l->before.profile;
  in.optimized = l->after.profile;
  in.comparison = l->comparison;
  in.left = l->left;
  in.today = l->today.profile;
  in.verification = verdict;
  in.sections = HONE_SECTION_ALL & ~(HONE_SECTION_LAYERS | HONE_SECTION_COMPARISON);
  in.width = cli_columns();
  in.colors = cli_colors(stdout);
  in.unicode = cli_unicode();
  return in;
}

static hone_status write_files(loop *l, const hone_report_input *in, hone_error *error) {
  static const struct {
    const char *name;
    hone_report_format format;
  } files[] = {{"report.html", HONE_REPORT_HTML},
               {"report.json", HONE_REPORT_JSON},
               {"trace.json", HONE_REPORT_TRACE}};
  char path[4096 + 32];
  hone_status status = HONE_OK;
  for (size_t i = 0; i < sizeof files / sizeof *files && status == HONE_OK; i++) {
    snprintf(path, sizeof path, "%s/%s", l->folder, files[i].name);
    status = cli_file_report(path, in, files[i].format, error);
  }
  if (status != HONE_OK) return status;
  snprintf(path, sizeof path, "%s/optimized.onnx", l->folder);
  if (l->verdict.verdict ==
      HONE_VERDICT_DIFFERENT) { /* a model with other answers is not handed out, an old one not left */
    remove(path);
    return HONE_OK;
  }
  status = rewrite(l, error);
  return status == HONE_OK ? hone_model_save(l->optimized, path, error) : status;
}

static int run(const cli_args *args) {
  loop l = {.args = args,
            .path = args->rest.item[0],
            .folder = args->output_dir ? args->output_dir : "hone-report"};
  hone_error error = {0};
  hone_report_verdict verdict;
  l.start_ms = cli_now_ms();
  hone_status status = work(&l, &error);
  int code = 0;
  cli_cancellable(NULL);
  if (status == HONE_OK && cli_interrupted()) status = error.status = HONE_ERROR_CANCELLED;
  hone_report_input in = {0};
  if (status == HONE_OK) {
    in = report_input(&l, &verdict);
    cli_hold(true);
    status = write_files(&l, &in, &error);
    cli_hold(false);
  }
  if (status != HONE_OK) {
    cli_drop_folder(l.folder, l.made);
    hint_of_folder(&l, &error);
    code = cli_report(&error);
  } else {
    code = cli_print_report(&in, args->json ? HONE_REPORT_JSON : HONE_REPORT_TEXT);
    if (!args->json)
      cli_print("\n%s/: report.html report.json prediction.json trace.json%s   (%.1f s)\n", l.folder,
                l.verdict.verdict == HONE_VERDICT_DIFFERENT ? "" : " optimized.onnx",
                (cli_now_ms() - l.start_ms) / 1e3);
    if (code == 0) code = cli_flush();
    if (code == 0) code = cli_verdict_exit(l.verdict.verdict);
  }
  hone_model_release(l.optimized);
  hone_comparison_destroy(l.comparison);
  hone_findings_destroy(l.findings);
  hone_findings_destroy(l.left);
  cli_profile_free(&l.today);
  cli_profile_free(&l.first);
  cli_profile_free(&l.before);
  cli_profile_free(&l.after);
  cli_session_close(&l.session);
  return code;
}

static const cli_option options[] = {
    {'o', "output-dir", CLI_TEXT, CLI_FIELD(output_dir), "DIR", "where the report goes (hone-report)"},
    {0, "inputs", CLI_SOME, CLI_FIELD(count), "N", "random inputs for verify (by the cost of one)"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE", "an input file or number (seeded random)"},
    {0, "passes", CLI_TEXT, CLI_FIELD(passes), "GLOBS",
     "graph passes to use; -GLOB leaves out (all of the level)"},
    {0, "baseline", CLI_TEXT, CLI_FIELD(baseline), "FILE",
     "what runs today: ONNX Runtime's profile of the model, or another tool's; a column of its own"},
    CLI_OPT_RUN,
    CLI_OPT_QUIET,
    CLI_OPT_VERBOSE,
    CLI_OPT_FINDINGS,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_loop = {
    "loop",
    "MODEL",
    "the whole loop: measure, explain, change, prove, report",
    "`hone MODEL.onnx` is the same. Profiles the model as it is (level 0), says where the time goes and why, "
    "rewrites it,\n"
    "proves that the answers are the same, and measures both in alternation. Writes DIR/report.html, "
    "report.json, prediction.json,\n"
    "trace.json and optimized.onnx. Exit code 1: the answers differ; 5: they cannot be trusted.",
    options,
    1,
    1,
    run};
