/* hone report: a profile of another tool (or of hone) as a page, table, trace or JSON. */
#include "cli/options/files.h"
#include "cli/reports/findings.h"
#include "cli/options/importing.h"
#include "cli/options/options.h"
#include "cli/reports/profiling.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <stdio.h>

static hone_status write_files(const cli_args *args, const hone_report_input *in, hone_error *error) {
  const cli_report_file files[] = {
      {args->output, HONE_REPORT_HTML}, {args->csv, HONE_REPORT_CSV}, {args->trace, HONE_REPORT_TRACE}};
  return cli_file_reports(args, in, files, sizeof files / sizeof *files, error);
}

static int run(const cli_args *args) {
  hone_recording p = {0};
  hone_findings *findings = NULL;
  hone_error error = {0};
  hone_status status = cli_import(args, args->rest.item, args->rest.n, &p, &error);
  if (status == HONE_OK) status = cli_diagnose(args, p.profile, &findings, &error);
  hone_report_input in = {.baseline = p.profile,
                          .findings = findings,
                          .title = cli_import_title(args, &p),
                          .max_layers = (size_t)args->rows};
  if (status == HONE_OK) status = cli_check_filter(args, p.profile, &error);
  if (status == HONE_OK) status = write_files(args, &in, &error);
  int code = 0;
  if (status != HONE_OK)
    code = cli_report(&error);
  else if (args->json)
    code = cli_print_report(&in, HONE_REPORT_PROFILE_JSON);
  else if (!args->output && !args->csv && !args->trace)
    code = cli_print_report(&in, HONE_REPORT_TEXT);
  hone_findings_destroy(findings);
  hone_recording_free(&p);
  return code;
}

static const cli_option options[] = {
    CLI_OPT_IMPORT,
    {0, "filter", CLI_TEXT, CLI_FIELD(filter), "TYPE|GLOB",
     "only layers of this operator type, name or ONNX node"},
    {0, "rows", CLI_COUNT, CLI_FIELD(rows), "N", "print at most N layers (all)"},
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE", "write a self-contained page"},
    {0, "csv", CLI_TEXT, CLI_FIELD(csv), "FILE", "write the layer table as CSV"},
    {0, "trace", CLI_TEXT, CLI_FIELD(trace), "FILE", "write a Chrome trace (opens in Perfetto)"},
    CLI_OPT_FLOAT,
    {0, "json", CLI_FLAG, CLI_FIELD(json), NULL, "print facts v1 with the derived tables"},
    CLI_OPT_FINDINGS,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_report = {
    "report",
    "FILE...",
    "show a profile of another tool as a page, table, trace or JSON",
    "Reads the same files as hone diagnose and writes the same reports as hone profile. Without -o, --csv, "
    "--trace or --json the whole report is printed as text.",
    options,
    1,
    100000,
    run};
