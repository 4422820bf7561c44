/* hone MODEL: measure, explain, change, prove, measure again, report. The loop is the library's
 * (hone_loop_run); here are its files and words. */
#include "cli/terminal/clock.h"
#include "cli/options/files.h"
#include "cli/reports/findings.h"
#include "cli/options/importing.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/options/precision.h"
#include "cli/reports/profiling.h"
#include "cli/options/quiet.h"
#include "cli/options/roofs.h"
#include "cli/options/session.h"
#include "cli/terminal/term.h"
#include "cli/reports/verdict.h"
#include "cli/terminal/watch.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct loop {
  const cli_args *args;
  const char *path, *folder;
  cli_session session; /* without a plan */
  hone_loop found;
  hone_recording today; /* --baseline: what runs today */
  double start_ms;
  size_t made; /* of the folder's path: cli_drop_folder */
} loop;

static hone_status spent(const loop *l, const char *step, hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_BUDGET};
  snprintf(error->what, sizeof error->what, "--max-seconds %g was spent %s the step '%s'",
           l->args->max_seconds, l->found.within ? "in" : "before", step);
  snprintf(error->where, sizeof error->where, "%.200s", l->path);
  snprintf(error->hint, sizeof error->hint, "give more, or hone profile, which keeps what it has measured");
  return HONE_ERROR_BUDGET;
}

static void say_step(const loop *l, const char *step) {
  if (l->args->verbose) cli_note("%s", step);
  cli_progress(step, 0, 0);
}

static void print_inspection(const loop *l, const hone_plan *plan) {
  hone_inspection in;
  if (l->args->json || hone_model_inspect(hone_plan_model(plan), &in, NULL) != HONE_OK) return;
  char a[16], b[16], c[24], d[16];
  cli_progress_end();
  cli_print("%s: %u node%s, %sFLOP, %s parameters, %sB of memory access, %s peak memory\n\n", l->path,
            in.n_nodes, cli_s(in.n_nodes), cli_si(in.flops, a), cli_si(in.params, b), cli_si(in.bytes, d),
            cli_bytes(in.peak_memory_bytes, c));
  hone_inspection_free(&in);
}

static int level_of(const loop *l) { return l->args->level < 0 ? 2 : (int)l->args->level; }

/* ---- while it runs */

/* Where nothing can be written, nothing needs to be measured. Nothing stays until there is something to
 * write: Ctrl-C would leave an empty folder. */
static hone_status try_folder(const loop *l, hone_error *error) {
  size_t made;
  const hone_status status = cli_make_folder(l->folder, &made, error);
  if (status == HONE_OK) cli_drop_folder(l->folder, made);
  return status;
}

/* The model is planned as it is. */
static hone_status planned(loop *l, const hone_plan *plan, hone_error *error) {
  cli_session_warn(&l->session);
  cli_session_note(&l->session, l->args, l->path, plan);
  l->session.load_ms = cli_now_ms() - l->session.load_ms;
  const hone_status status = try_folder(l, error);
  if (status == HONE_OK) print_inspection(l, plan);
  return status;
}

static hone_report_input prediction_input(const hone_loop *found) {
  return (hone_report_input){.baseline = found->first.profile,
                             .findings = found->findings,
                             .has_prediction = true,
                             .predicted_gain_pct = found->predicted_pct,
                             .predicted_after_ms = found->predicted_ms,
                             .predicted_unsure_ms = found->predicted_unsure_ms,
                             .prediction_made = found->predicted_at,
                             .prediction_basis = found->predicted_ms > 0 ? found->predicted_by : NULL};
}

/* What the change will bring is written down before there is anything that could be measured. */
static hone_status write_prediction(loop *l, const hone_loop *found, hone_error *error) {
  char path[4096 + 32];
  const hone_report_input in = prediction_input(found);
  const hone_status status = cli_make_folder(l->folder, &l->made, error);
  snprintf(path, sizeof path, "%s/prediction.json", l->folder);
  return status == HONE_OK ? cli_file_report(path, &in, HONE_REPORT_FINDINGS_JSON, error) : status;
}

static const char *const steps[] = {[HONE_LOOP_DIAGNOSE] = "diagnose",
                                    [HONE_LOOP_OPTIMIZE] = "optimize",
                                    [HONE_LOOP_VERIFY] = "verify",
                                    [HONE_LOOP_PROFILE] = "profile"};

static hone_status begins(void *arg, hone_loop_stage stage, const hone_loop *found, hone_error *error) {
  loop *l = arg;
  if (stage == HONE_LOOP_RUN) return planned(l, found->plan, error);
  if (stage == HONE_LOOP_DONE) {
    cli_session_warn(&l->session);
    return HONE_OK;
  }
  hone_status status = stage == HONE_LOOP_OPTIMIZE ? write_prediction(l, found, error) : HONE_OK;
  if (status == HONE_OK) say_step(l, steps[stage]);
  if (status == HONE_OK && (stage == HONE_LOOP_DIAGNOSE || stage == HONE_LOOP_PROFILE))
    status = cli_quiet_wait(l->args, error);
  return status;
}

static void describe(void *arg, hone_facts *facts, int level) {
  const loop *l = arg;
  (void)level; /* the library has noted it */
  cli_describe(&l->session, l->args, l->path, facts);
}

/* ---- the loop */

static hone_status refuse_plan(const loop *l, hone_error *error) {
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what,
           "a saved plan cannot be made faster: give the model that it was made of");
  snprintf(error->where, sizeof error->where, "%.200s", l->path);
  snprintf(error->hint, sizeof error->hint, "hone run, bench, profile and verify take it");
  return HONE_ERROR_USAGE;
}

/* The tensors that --input gave, by the model's inputs. */
static const hone_tensor **given_inputs(const cli_session *s) {
  const hone_tensor **in = calloc(s->n_inputs + 1, sizeof *in);
  for (uint32_t i = 0; in && i < s->n_inputs; i++) in[i] = s->data[i].impl ? &s->data[i].tensor : NULL;
  return in;
}

static hone_status run_loop(loop *l, const cli_diagnosis *diagnosis, hone_error *error) {
  const cli_args *a = l->args;
  hone_precision_options precision;
  bool automatic;
  hone_status status = cli_precision_options(a, &precision, &automatic, error);
  if (status != HONE_OK) return status;
  const hone_tensor **inputs = given_inputs(&l->session);
  if (!inputs) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory"};
    return HONE_ERROR_MEMORY;
  }
  hone_plan_options plan = cli_session_options(&l->session, a, level_of(l));
  plan.precision = automatic ? NULL : a->precision;
  const hone_loop_options o = {.device = a->device,
                               .plan = &plan,
                               .precision = automatic ? &precision : NULL,
                               .inputs = inputs,
                               .seed = (uint64_t)a->seed,
                               .threads = (uint32_t)a->threads,
                               .verify_inputs = (uint32_t)a->count,
                               .max_seconds = a->max_seconds,
                               .spent_ms = cli_now_ms() - l->start_ms,
                               .diagnose = &diagnosis->options,
                               .peaks = cli_peaks(),
                               .describe = describe,
                               .begins = begins,
                               .arg = l,
                               .watch = cli_watch()};
  status = hone_loop_run(l->session.engine, l->session.model, &o, &l->found, error);
  free(inputs);
  if (status != HONE_OK && !l->found.plan) cli_session_hint(&l->session, a, error);
  return l->found.late ? spent(l, steps[l->found.stage], error) : status;
}

/* The loop itself, up to the files. */
static hone_status work(loop *l, hone_error *error) {
  cli_diagnosis diagnosis = {0};
  char last[4096 + 32];
  if (hone_plan_is_saved(l->path)) return refuse_plan(l, error);
  snprintf(last, sizeof last, "%.4096s/optimized.onnx", l->folder);
  hone_status status = cli_keep_inputs(l->args, last, error);
  if (status == HONE_OK && l->args->baseline)
    status = cli_import(l->args, &l->args->baseline, 1, &l->today, error);
  if (status != HONE_OK) return status;
  say_step(l, "load");
  if (cli_remaining(l->start_ms, l->args->max_seconds) <= 0) return spent(l, "load", error);
  l->session.load_ms = cli_now_ms(); /* so far its beginning */
  status = cli_check_device(l->args, error);
  if (status == HONE_OK) status = cli_session_load(&l->session, l->args, l->path, error);
  if (status == HONE_OK) status = cli_diagnosis_open(l->args, &diagnosis, error);
  if (status == HONE_OK) status = run_loop(l, &diagnosis, error);
  cli_diagnosis_close(&diagnosis);
  return status;
}

/* ---- files */

static hone_report_input report_input(const loop *l, hone_report_verdict *verdict) {
  const hone_loop *found = &l->found;
  const hone_verify_result *r = &found->verdict;
  *verdict = (hone_report_verdict){.verdict = cli_verdict_name(r->verdict),
                                   .inputs = r->inputs,
                                   .max_abs = r->max_abs,
                                   .max_rel = r->max_rel,
                                   .tolerance = r->tolerance,
                                   .first_different_node =
                                       r->first_different_node[0] ? r->first_different_node : NULL,
                                   .note = r->reason[0] ? r->reason : r->reference};
  hone_report_input in = prediction_input(found);
  in.baseline = found->before.profile;
  in.optimized = found->after.profile;
  in.comparison = found->comparison;
  in.left = found->left;
  in.today = l->today.profile;
  in.verification = verdict;
  in.sections = HONE_SECTION_ALL & ~(HONE_SECTION_LAYERS | HONE_SECTION_COMPARISON);
  return in;
}

static hone_status write_model(const loop *l, const char *path, hone_error *error) {
  const hone_optimize_options o = {.level = level_of(l), .passes = l->args->passes};
  hone_model *optimized = NULL;
  hone_status status = hone_model_optimize(l->session.model, &o, &optimized, NULL, error);
  if (status == HONE_OK) status = hone_model_save(optimized, path, error);
  hone_model_release(optimized);
  return status;
}

static hone_status write_files(const loop *l, const hone_report_input *in, hone_error *error) {
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
  if (l->found.verdict.verdict != HONE_VERDICT_DIFFERENT) return write_model(l, path, error);
  remove(path); /* a model with other answers is not handed out, an old one not left */
  return HONE_OK;
}

/* Without all of them none is of use. An older run's folder keeps what is in it. */
static void drop_files(const loop *l) {
  static const char *const names[] = {"report.html", "report.json", "trace.json", "prediction.json",
                                      "optimized.onnx"};
  char path[4096 + 32];
  for (size_t i = 0; i < sizeof names / sizeof *names && l->made; i++) {
    snprintf(path, sizeof path, "%s/%s", l->folder, names[i]);
    remove(path);
  }
}

static void hint_of_folder(const loop *l, hone_error *error) {
  if (error->status != HONE_ERROR_IO || error->hint[0] ||
      strncmp(error->where, l->folder, strlen(l->folder)) != 0)
    return;
  snprintf(error->hint, sizeof error->hint, "--output-dir DIR writes the report elsewhere");
}

static int answer(const loop *l, const hone_report_input *in) {
  const hone_verdict verdict = l->found.verdict.verdict;
  int code = cli_print_report(in, l->args->json ? HONE_REPORT_JSON : HONE_REPORT_TEXT);
  if (!l->args->json)
    cli_print("\n%s/: report.html report.json prediction.json trace.json%s   (%.1f s)\n", l->folder,
              verdict == HONE_VERDICT_DIFFERENT ? "" : " optimized.onnx", (cli_now_ms() - l->start_ms) / 1e3);
  if (code == 0) code = cli_flush();
  return code ? code : cli_verdict_exit(verdict);
}

static int run(const cli_args *args) {
  loop l = {.args = args,
            .path = args->rest.item[0],
            .folder = args->output_dir ? args->output_dir : "hone-report"};
  hone_error error = {0};
  hone_report_verdict verdict;
  hone_report_input in = {0};
  int code;
  l.start_ms = cli_now_ms();
  hone_status status = work(&l, &error);
  cli_progress_end();
  cli_cancellable(NULL);
  if (status == HONE_OK && cli_interrupted()) status = error.status = HONE_ERROR_CANCELLED;
  if (status == HONE_OK) {
    in = report_input(&l, &verdict);
    cli_hold(true);
    status = write_files(&l, &in, &error);
    cli_hold(false);
    if (status != HONE_OK) { /* what was measured is not lost */
      drop_files(&l);
      cli_print_report(&in, args->json ? HONE_REPORT_JSON : HONE_REPORT_TEXT);
      cli_flush();
    }
  }
  if (status != HONE_OK) {
    cli_drop_folder(l.folder, l.made);
    hint_of_folder(&l, &error);
    code = cli_report(&error);
  } else {
    code = answer(&l, &in);
  }
  hone_loop_free(&l.found);
  hone_recording_free(&l.today);
  cli_session_close(&l.session);
  return code;
}

static const cli_option options[] = {
    {'o', "output-dir", CLI_TEXT, CLI_FIELD(output_dir), "DIR", "where the report goes (hone-report)"},
    {0, "inputs", CLI_SOME, CLI_FIELD(count), "N", "random inputs for verify (by the cost of one)"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE", "an input file or number (seeded random)"},
    CLI_OPT_PASSES,
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
    "rewrites it, proves that the answers are the same, and measures both in alternation. Writes "
    "DIR/report.html, report.json, prediction.json, trace.json and optimized.onnx. Exit code 1: the answers "
    "differ; 5: they cannot be trusted.",
    options,
    1,
    1,
    run};
