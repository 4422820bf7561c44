/* hone tune: measures what may run each step and keeps the choice. */
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/folder.h"
#include "cli/options/options.h"
#include "cli/options/session.h"
#include "cli/terminal/term.h"
#include "cli/reports/tuning.h"

#include <hone/hone.h>
#include <stdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_PASSES = 3 };
#define BLOCK_MS 20.0     /* of runs of one plan before the other one's turn */
#define COMPARE_MS 8000.0 /* for both plans together */

/* ------------------------------------------------------------------ progress */

/* A bar with the time left on a terminal; elsewhere a line now and then. The sum is told by the report: there
 * are several plans to measure. */
static bool progress(void *arg, uint32_t done, uint32_t total, double left) {
  double *last = arg;
  char what[48] = "tune";
  if (left >= 0) snprintf(what, sizeof what, "tune, %.0f s left", ceil(left));
  if (isatty(STDERR_FILENO)) {
    cli_progress(what, done, total);
  } else if (done < total && cli_now_ms() - *last > 5000) {
    cli_note("tune: %u of %u steps%s%s", done, total, left >= 0 ? ", " : "", left >= 0 ? what + 6 : "");
    *last = cli_now_ms();
  }
  return !cli_interrupted();
}

/* ------------------------------------------------------------------ measuring */

/* Is the budget spent, by time or by steps? */
static bool spent(const cli_tuning *t, const cli_args *args, double start) {
  return (args->tune_seconds > 0 && cli_remaining(start, args->tune_seconds) <= 0) ||
         (args->tune_steps && t->report.measured + t->more >= (uint64_t)args->tune_steps);
}

/* Measures one plan's steps. *report is to be freed. */
static hone_status tune_plan(const cli_tuning *t, cli_session *s, const cli_args *args, double start,
                             bool again, hone_tune_report *report, hone_error *error) {
  double last = cli_now_ms();
  hone_tune_options o = {.again = again, .unsaved = true, .progress = progress, .progress_arg = &last};
  if (args->tune_seconds > 0) o.max_seconds = cli_remaining(start, args->tune_seconds);
  if (args->tune_steps) o.max_steps = (uint32_t)args->tune_steps - t->report.measured - t->more;
  hone_status status = hone_tune(s->plan, &o, report, error);
  cli_progress_end();
  return status;
}

/* Another plan of the same model: its steps that were not met before. */
static hone_status tune_more(cli_tuning *t, cli_session *s, const cli_args *args, double start,
                             uint32_t *news, hone_error *error) {
  hone_tune_report report = {0};
  *news = 0;
  if (t->report.stopped || spent(t, args, start)) return HONE_OK;
  hone_status status = tune_plan(t, s, args, start, false, &report, error);
  if (status != HONE_OK) return status;
  t->more += *news = report.measured;
  t->report.stopped |= report.stopped;
  t->report.seconds += report.seconds;
  hone_tune_report_free(&report);
  return HONE_OK;
}

/* Where lowering weighs one step against several, all of them have to be known: the plan with every one step
 * that can be made, and the plan with none. */
static hone_status tune_alternatives(cli_tuning *t, const cli_args *untuned, double start,
                                     hone_error *error) {
  static const hone_chains side[] = {HONE_CHAINS_ALWAYS, HONE_CHAINS_NEVER};
  hone_status status = HONE_OK;
  for (int k = 0; k < 2 && status == HONE_OK; k++) {
    cli_session other = {0}, from = t->before;
    uint32_t news;
    from.chains = side[k];
    status = cli_session_fork(&from, untuned, (int)untuned->level, &other, error);
    if (status == HONE_OK) status = tune_more(t, &other, untuned, start, &news, error);
    cli_session_close(&other);
  }
  return status;
}

/* Tunes what the plans of this model are made of: the untuned plan first, then what its choices lead to. */
static hone_status tune_passes(cli_tuning *t, const cli_args *args, const cli_args *untuned,
                               hone_error *error) {
  double start = cli_now_ms();
  uint32_t news = 1;
  cli_hold(true); /* Ctrl-C ends the measuring and keeps what there is */
  hone_status status = tune_plan(t, &t->before, args, start, args->again, &t->report, error);
  if (status == HONE_OK && t->report.weighed) status = tune_alternatives(t, untuned, start, error);
  for (int pass = 0; pass < MOST_PASSES && news && status == HONE_OK; pass++) {
    status = pass ? cli_session_replan(&t->after, args, (int)args->level, error)
                  : cli_session_fork(&t->before, args, (int)args->level, &t->after, error);
    if (status == HONE_OK) status = tune_more(t, &t->after, args, start, &news, error);
  }
  cli_hold(false);
  hone_error later = {.status = HONE_OK};
  /* A kernel has failed: what was measured before it is right, and need not be measured again. */
  if (status == HONE_ERROR_DEVICE) hone_tune_save(t->before.plan, &later);
  return status;
}

static hone_status block(cli_session *s, const cli_args *args, uint32_t runs, double *ms, hone_error *error) {
  double start = cli_now_ms();
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < runs && status == HONE_OK; i++) status = cli_session_run(s, args, error);
  *ms = (cli_now_ms() - start) / runs;
  return status;
}

/* Both plans in alternating blocks, so that the machine's moods hit both alike. */
static hone_status compare(cli_tuning *t, const cli_args *args, hone_error *error) {
  cli_session *side[2] = {&t->before, &t->after};
  double sample[2][HONE_TUNE_ROUNDS], one[2] = {0};
  hone_status status = HONE_OK;
  for (int k = 0; k < 2 && status == HONE_OK; k++) {
    status = block(side[k], args, 2, &one[k], error);
    if (status == HONE_OK) status = block(side[k], args, 1, &one[k], error);
  }
  double slower = one[0] > one[1] ? one[0] : one[1];
  uint32_t runs = slower > 0 && slower < BLOCK_MS ? (uint32_t)(BLOCK_MS / slower) : 1,
           rounds = HONE_TUNE_ROUNDS;
  if (rounds * 2 * runs * slower > COMPARE_MS) rounds = (uint32_t)(COMPARE_MS / (2 * runs * slower));
  if (rounds < 3) rounds = 3;
  for (uint32_t i = 0; i < rounds && status == HONE_OK; i++) {
    for (uint32_t k = 0; k < 2 && status == HONE_OK; k++)
      status = block(side[(i + k) % 2], args, runs, &sample[(i + k) % 2][i], error);
    cli_progress("before and after", i + 1, rounds);
  }
  cli_progress_end();
  hone_sample_stats a, b;
  if (status == HONE_OK && hone_stats_compute(sample[0], rounds, &a) &&
      hone_stats_compute(sample[1], rounds, &b)) {
    t->compared = true;
    t->before_ms = a.p50;
    t->after_ms = b.p50;
    t->slower = hone_times_slower(sample[0], sample[1], rounds);
  }
  return status;
}

/* True when the tuned plan runs anything else than the untuned one. */
static bool differs(const cli_tuning *t) {
  uint32_t n = t->after.plan ? hone_plan_steps(t->after.plan) : 0;
  if (!n) return false;
  if (n != hone_plan_steps(t->before.plan)) return true;
  for (uint32_t i = 0; i < n; i++) {
    hone_step_info a, b;
    if (!hone_plan_step(t->before.plan, i, &a) || !hone_plan_step(t->after.plan, i, &b) ||
        strcmp(a.tactic, b.tactic) != 0 || a.threads != b.threads)
      return true;
  }
  return false;
}

/* Choices that make the whole slower are left out of the file, which keeps what it held: what other models
 * share with this one stays as it is. */
static void save(cli_tuning *t) {
  hone_error error = {0};
  const char *file = "";
  if (t->slower || !(t->report.measured + t->more)) return;
  hone_engine_tuned(t->before.engine, &file, NULL);
  if (hone_tune_save(t->before.plan, &error) == HONE_OK)
    snprintf(t->file, sizeof t->file, "%s", file);
  else if (!t->unkept) /* measured all the same */
    cli_note("warning: the choices were not saved: %.200s: %.200s", error.where, error.what);
}

/* A place that cannot keep the choices is told before anything is measured for it. */
static hone_status check_cache(const char *path, hone_error *error) {
  struct stat st;
  if (!path || strcmp(path, "off") == 0 || stat(path, &st) != 0 || S_ISREG(st.st_mode)) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_INPUT, .hint = "name a file that does not exist yet"};
  snprintf(error->what, sizeof error->what, "tuned tactics are kept in a regular file, and this is none");
  snprintf(error->where, sizeof error->where, "%s", path);
  return error->status;
}

/* Choices are written into a new file that takes the old one's place. A folder in which none can be made is
 * told before anything is measured; what is measured is shown all the same. */
static void check_folder(cli_tuning *t, const char *file) {
  char folder[4096], where[4096];
  snprintf(folder, sizeof folder, "%s", file);
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = 0; /* the root keeps its own */
  t->unkept = *file && !cli_can_hold(slash ? folder : ".", where, sizeof where);
  if (t->unkept)
    cli_note("warning: the choices will not be saved: %.200s: no file can be made in %.200s", file, where);
}

static int run(const cli_args *args) {
  cli_tuning t = {.path = args->rest.item[0]};
  cli_args untuned = *args;
  hone_error error = {0};
  int code = 0;
  if (check_cache(args->cache, &error) != HONE_OK) return cli_report(&error);
  untuned.no_cache = true;
  hone_status status = cli_session_open(&t.before, &untuned, t.path, &error);
  const char *warning = "", *file = "";
  if (t.before.engine) hone_engine_tuned(t.before.engine, &file, &warning);
  if (*warning) cli_note("warning: %s", warning);
  if (status == HONE_OK) check_folder(&t, file);
  if (status == HONE_OK) status = tune_passes(&t, args, &untuned, &error);
  t.differs = status == HONE_OK && differs(&t);
  if (t.differs && !args->check && !cli_interrupted()) {
    status = compare(&t, args, &error);
    if (status == HONE_ERROR_CANCELLED && cli_interrupted()) status = HONE_OK; /* the choices are there */
  }
  save(&t);
  if (status != HONE_OK) {
    code = cli_report(&error);
  } else {
    cli_tuning_agreement(&t);
    code = args->json ? cli_print_json(cli_tuning_json(&t)) : cli_tuning_text(&t, args->check);
    if (code == 0 && (t.report.stopped || cli_interrupted()))
      code = cli_end_interrupted("what was measured is kept; hone tune goes on from there");
    if (code == 0 && args->check && t.agree < CLI_AGREEMENT * t.contested) code = 1;
  }
  hone_tune_report_free(&t.report);
  if (t.after.borrows) cli_session_close(&t.after);
  cli_session_close(&t.before);
  return code;
}

static const cli_option options[] = {
    {'t', "threads", CLI_THREADS, CLI_FIELD(threads), "N", "threads (all processors)"},
    CLI_OPT_SHAPES,
    {0, "level", CLI_LEVEL, CLI_FIELD(level), "0..3", "optimisation level (2)"},
    {0, "precision", CLI_TEXT, CLI_FIELD(precision), "f32|bf16|fp16", "arithmetic (f32)"},
    {0, "device", CLI_TEXT, CLI_FIELD(device), "cpu|cuda", "where to run: cpu, cuda or cuda:N (cpu)"},
    {0, "tune-seconds", CLI_NUMBER, CLI_FIELD(tune_seconds), "S",
     "measure for at most this long (as long as it takes)"},
    {0, "tune-steps", CLI_SOME, CLI_FIELD(tune_steps), "N",
     "measure at most N steps, what takes longest first (all)"},
    {0, "cache", CLI_TEXT, CLI_FIELD(cache), "FILE",
     "file of tuned tactics (HONE_TUNE_CACHE, or the user's)"},
    {0, "again", CLI_FLAG, CLI_FIELD(again), NULL, "measure even what is known"},
    {0, "check", CLI_FLAG, CLI_FIELD(check), NULL, "does the cost model choose what measuring chooses?"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_tune = {
    "tune",
    "MODEL",
    "measure every way to run each step and keep the fastest",
    "Every tactic that takes a step is measured on the step's real shapes, in interleaved rounds; on a GPU, "
    "where kernels are compiled first, those that are predicted to take at most three times as long as the "
    "fastest. One that beats the cost model's choice by more than noise is kept, for this processor, thread "
    "count and version; plans made later use it (--no-cache: not), unless they make the whole model slower. "
    "Ctrl-C keeps what is measured. --check: exit code 1 when the cost model chooses the fastest tactic, "
    "within 10 %, on fewer than 80 % of the steps that have two more than 10 % apart.",
    options,
    1,
    1,
    run};
