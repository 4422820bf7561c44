/* hone op why: what of a model a custom operator would make faster, and by how much. */
#include "cli/commands/op/part.h"
#include "cli/options/options.h"
#include "cli/options/session.h"
#include "cli/options/shapes.h"
#include "cli/reports/candidates.h"
#include "cli/reports/profiling.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <stdio.h>
#include <stdlib.h>

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

/* The slowest place whose nodes hone op new --from writes down; NULL: none. */
static const hone_candidate_place *writable(const op_source *source, const hone_candidate *c) {
  for (uint32_t i = 0; i < c->n_places; i++) {
    const hone_candidate_place *p = &c->place[i];
    op_from parts;
    hone_error ignored = {0};
    const hone_status status = op_part_read(source, p->node, p->n_nodes, c->name, c->name, &parts, &ignored);
    op_from_drop(&parts);
    if (status == HONE_OK) return p;
  }
  return NULL;
}

/* The command that is proposed works: it is tried, but for the files. */
static void find_starts(const cli_args *args, const char *path, const hone_candidates *found,
                        const hone_candidate_place **start) {
  hone_model *model = NULL;
  op_source source = {0};
  hone_error ignored = {0};
  if (found->n_worth && cli_load(args, path, &model, &ignored) == HONE_OK &&
      op_source_open(model, &source, &ignored) == HONE_OK)
    for (uint32_t i = 0; i < found->n_worth; i++) start[i] = writable(&source, &found->candidate[i]);
  op_source_close(&source);
  if (model) hone_model_release(model);
}

static int show(const cli_args *args, const hone_candidates *found, const hone_profile *profile,
                const char *path) {
  const hone_candidate_place **start = calloc(found->n + 1, sizeof *start);
  if (!start) return cli_error(HONE_ERROR_MEMORY, "out of memory");
  find_starts(args, path, found, start);
  if (profile->doubt) cli_note("these figures are in doubt: %s", profile->doubt);
  int code = 0;
  if (args->json) {
    code = cli_print_json(cli_candidates_json(found, start, profile, path));
  } else {
    cli_candidates_print(found, start, profile, path, args->verbose ? found->n : ROWS);
    code = cli_flush();
  }
  free(start);
  return code;
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
    "what of a model a custom operator would make faster, by how much, and whether that is worth it",
    NULL,
    options,
    1,
    1,
    run};
