/* hone profile: where the time goes. */
#include "cli/options/files.h"
#include "cli/reports/findings.h"
#include "cli/terminal/interrupts.h"
#include "cli/options/options.h"
#include "cli/reports/profiling.h"
#include "cli/options/session.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <stdio.h>
#include <string.h>

static hone_status write_files(const cli_args *args, const hone_report_input *in, hone_error *error) {
  const cli_report_file files[] = {{args->csv, HONE_REPORT_CSV},
                                   {args->trace, HONE_REPORT_TRACE},
                                   {args->html, HONE_REPORT_HTML},
                                   {args->output, HONE_REPORT_PROFILE_JSON}};
  return cli_file_reports(args, in, files, sizeof files / sizeof *files, error);
}

static int end_early(const hone_profile *p) {
  char kept[80];
  snprintf(kept, sizeof kept, "%zu of %.0f runs count", (size_t)p->iterations,
           hone_facts_get_meta(p->facts)->runs);
  return cli_end_interrupted(kept);
}

/* What is profiled, and with --float MODEL the network in float beside it. */
typedef struct profiled {
  const char *path[2]; /* [1] NULL: alone */
  cli_session session[2];
  hone_recording record[2];
} profiled;

static hone_status check_float(const cli_args *args, profiled *p, hone_error *error) {
  const char *why = args->float_files.n > 1 ? "--float wants one model, or the files of a record"
                    : args->filter          ? "--float needs the whole network: leave out --filter"
                    : args->counters || args->inputs.n
                        ? "--float MODEL goes with neither --counters nor --input"
                        : NULL;
  if (!args->float_files.n || !cli_is_model(args->float_files.item[0])) return HONE_OK;
  p->path[1] = args->float_files.item[0];
  if (!why) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_USAGE};
  snprintf(error->what, sizeof error->what, "%s", why);
  return HONE_ERROR_USAGE;
}

static hone_status measure(const cli_args *args, profiled *p, const hone_counting *counting,
                           const char *uncounted, hone_error *error) {
  hone_status status = cli_session_open(&p->session[0], args, p->path[0], error);
  if (status != HONE_OK) return status;
  if (!p->path[1])
    return cli_profile_make(&p->session[0], args, p->path[0], counting, uncounted, &p->record[0], error);
  status = cli_session_open(&p->session[1], args, p->path[1], error);
  if (status != HONE_OK) return status;
  cli_session *const both[2] = {&p->session[0], &p->session[1]};
  return cli_profile_pair(both, args, (const char *const[2]){p->path[0], p->path[1]}, p->record, error);
}

static hone_status diagnose(const cli_args *args, const profiled *p, hone_findings **findings,
                            hone_error *error) {
  cli_args options = *args;
  cli_diagnosis d;
  if (p->path[1]) options.float_files.n = 0; /* it is no record to read */
  hone_status status = cli_diagnosis_open(&options, &d, error);
  if (p->path[1]) d.options.float_profile = p->record[1].profile;
  if (status == HONE_OK) status = hone_diagnose(p->record[0].profile, &d.options, findings, error);
  cli_diagnosis_close(&d);
  return status;
}

static int run(const cli_args *args) {
  profiled p = {.path = {args->rest.item[0]}};
  hone_findings *findings = NULL;
  hone_error error = {0};
  int code = 0;
  hone_counting *counting = NULL;
  hone_error uncounted = {0};
  /* Before the session starts its threads: counters follow only threads that begin later. */
  if ((args->counters || args->filter) && strcmp(cli_device_name(args), "cpu") == 0)
    hone_counting_start(&counting, &uncounted);
  hone_status status = check_float(args, &p, &error);
  if (status == HONE_OK) status = measure(args, &p, counting, uncounted.what, &error);
  if (status == HONE_OK) status = diagnose(args, &p, &findings, &error);
  hone_report_input in = {.baseline = p.record[0].profile,
                          .findings = findings,
                          .max_layers = (size_t)args->rows,
                          .sections = HONE_SECTION_SUMMARY | HONE_SECTION_LAYERS | HONE_SECTION_TOP5 |
                                      HONE_SECTION_TYPES | HONE_SECTION_CLOSURE | HONE_SECTION_COUNTERS};
  if (!args->filter)
    in.sections |= HONE_SECTION_FINDINGS; /* of chosen layers alone nothing follows for the whole */
  cli_hold(true);                         /* what is measured is written */
  cli_cancellable(NULL);
  if (status == HONE_OK) status = cli_check_filter(args, p.record[0].profile, &error);
  if (status == HONE_OK) status = write_files(args, &in, &error);
  if (status != HONE_OK)
    code = cli_report(&error);
  else
    code = cli_print_report(&in, args->json ? HONE_REPORT_PROFILE_JSON : HONE_REPORT_TEXT);
  if (status == HONE_OK && code == 0 && cli_interrupted()) code = end_early(p.record[0].profile);
  cli_hold(false);
  hone_counting_stop(counting);
  hone_findings_destroy(findings);
  for (int i = 0; i < 2; i++) {
    hone_recording_free(&p.record[i]);
    cli_session_close(&p.session[i]);
  }
  return code;
}

static const cli_option options[] = {
    {0, "filter", CLI_TEXT, CLI_FIELD(filter), "TYPE|GLOB",
     "only layers of this operator type, name or ONNX node, with their hardware counters"},
    {'n', "runs", CLI_SOME, CLI_FIELD(runs), "N", "measured runs (30)"},
    {'w', "warmup", CLI_COUNT, CLI_FIELD(warmup), "N", "runs before that (3)"},
    {0, "counters", CLI_FLAG, CLI_FIELD(counters), NULL,
     "hardware counters without --filter: of every step on a GPU, of the whole run on a CPU"},
    {0, "rows", CLI_COUNT, CLI_FIELD(rows), "N", "print at most N layers (all)"},
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE", "write the profile as JSON (facts v1)"},
    {0, "trace", CLI_TEXT, CLI_FIELD(trace), "FILE", "write a Chrome trace (opens in Perfetto)"},
    {0, "csv", CLI_TEXT, CLI_FIELD(csv), "FILE", "write the layer table as CSV"},
    {0, "html", CLI_TEXT, CLI_FIELD(html), "FILE", "write a self-contained page"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE", "an input file or number (seeded random)"},
    {0, "reload", CLI_FLAG, CLI_FIELD(reload), NULL,
     "read and decode the input files before every run, as a server does: T_pre"},
    CLI_OPT_RUN,
    CLI_OPT_PREPROCESS,
    CLI_OPT_ARRIVING,
    CLI_OPT_PASSES,
    CLI_OPT_QUIET,
    CLI_OPT_FINDINGS,
    {0, "float", CLI_LIST, CLI_FIELD(float_files), "MODEL|FILE",
     "the network in float, run in turn with it, or a profile: does INT8 pay?"},
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_profile = {
    "profile",
    "MODEL",
    "measure every layer and show where the time goes",
    "Layers are timed inside whole runs of the very plan that bench measures. The closure line adds layers, "
    "gaps and copies up to the wall time of an independent clock and shows what is missing. Ctrl-C ends "
    "measuring; the runs that finished are shown and written.",
    options,
    1,
    1,
    run};
