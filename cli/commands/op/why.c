/* hone op why: what of a model a custom operator would make faster, and by how much. */
#include "cli/options/options.h"
#include "cli/options/session.h"
#include "cli/reports/candidates.h"
#include "cli/reports/profiling.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <stdio.h>

enum { RUNS = 10, ROWS = 5 };

static hone_status refuse_saved(const cli_session *session, const char *path, hone_error *error) {
  if (!session->saved) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "hone op why looks at models, and this is a saved plan");
  snprintf(error->where, sizeof error->where, "%.200s", path);
  snprintf(error->hint, sizeof error->hint, "give the ONNX file that it was made of");
  return HONE_ERROR_USAGE;
}

/* *out NULL: none is overridden. */
static hone_status read_thresholds(const cli_args *args, hone_thresholds **out, hone_error *error) {
  *out = args->thresholds.n ? hone_thresholds_create() : NULL;
  hone_status status = HONE_OK;
  for (size_t i = 0; i < args->thresholds.n && status == HONE_OK; i++)
    status = hone_thresholds_parse(*out, args->thresholds.item[i], error);
  return status;
}

static int show(const cli_args *args, const hone_candidates *found, const hone_profile *profile,
                const char *path) {
  if (profile->doubt) cli_note("these figures are in doubt: %s", profile->doubt);
  if (args->json) return cli_print_json(cli_candidates_json(found, profile, path));
  cli_candidates_print(found, profile, path, args->verbose ? found->n : ROWS);
  return cli_flush();
}

static int run(const cli_args *args) {
  const char *const *rest = args->rest.item;
  cli_args options = *args;
  cli_session session = {0};
  hone_recording record = {0};
  hone_candidates found = {0};
  hone_thresholds *thresholds;
  hone_error error = {0};
  if (options.runs < 0) options.runs = RUNS;
  hone_status status = read_thresholds(&options, &thresholds, &error);
  if (status == HONE_OK) status = cli_session_open(&session, &options, rest[0], &error);
  if (status == HONE_OK) status = refuse_saved(&session, rest[0], &error);
  if (status == HONE_OK) status = cli_profile_make(&session, &options, rest[0], NULL, NULL, &record, &error);
  cli_cancellable(NULL);
  const hone_plan_options plan = cli_session_options(&session, &options, (int)options.level);
  if (status == HONE_OK)
    status =
        hone_candidates_find(session.plan, session.model, &plan, thresholds, record.profile, &found, &error);
  const int code = status == HONE_OK ? show(&options, &found, record.profile, rest[0]) : cli_report(&error);
  hone_candidates_free(&found);
  hone_thresholds_destroy(thresholds);
  hone_recording_free(&record);
  cli_session_close(&session);
  return code;
}

static const cli_option options[] = {
    {'n', "runs", CLI_SOME, CLI_FIELD(runs), "N", "measured runs (10)"},
    {'w', "warmup", CLI_COUNT, CLI_FIELD(warmup), "N", "runs before that (3)"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE", "an input file or number (seeded random)"},
    CLI_OPT_RUN,
    CLI_OPT_PASSES,
    CLI_OPT_QUIET,
    {0, "threshold", CLI_LIST, CLI_FIELD(thresholds), "NAME=X",
     "override one, such as min_gain=3 (diagnose --thresholds lists)"},
    CLI_OPT_VERBOSE,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_op_why = {
    "op why",
    "MODEL",
    "what of a model a custom operator would make faster, by how much, and whether that "
    "is worth it",
    NULL,
    options,
    1,
    1,
    run};
