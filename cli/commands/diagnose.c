/* hone diagnose: what the profile of another tool (or of hone) says, and what to do about it. */
#include "cli/options/files.h"
#include "cli/reports/findings.h"
#include "cli/options/importing.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <stdio.h>
#include <string.h>

static bool has(const hone_findings *list, const char *id) {
  for (size_t i = 0; list && i < list->count; i++)
    if (strcmp(list->items[i].id, id) == 0) return true;
  return false;
}

static int run(const cli_args *args) {
  if (args->list_thresholds) return cli_print_thresholds(args);
  if (!args->rest.n)
    return cli_error(HONE_ERROR_USAGE, "hone diagnose: missing argument; usage: hone diagnose FILE...");
  hone_recording p = {0};
  hone_findings *findings = NULL;
  hone_error error = {0};
  hone_status status = cli_import(args, args->rest.item, args->rest.n, &p, &error);
  if (status == HONE_OK) status = cli_diagnose(args, p.profile, &findings, &error);
  hone_report_input in = {.baseline = p.profile,
                          .findings = findings,
                          .title = cli_import_title(args, &p),
                          .sections = HONE_SECTION_SUMMARY | HONE_SECTION_TOP5 | HONE_SECTION_CLOSURE |
                                      HONE_SECTION_FINDINGS | HONE_SECTION_COUNTERS};
  if (p.profile && has(findings, "incomplete_record:window")) {
    /* Nobody will read a time line of pauses: what was computed in it, and where. */
    in.sections |= HONE_SECTION_LAYERS | HONE_SECTION_TYPES;
    in.sections &= ~(unsigned)HONE_SECTION_TOP5;
    in.max_layers = 12;
  }
  int code = status != HONE_OK
                 ? cli_report(&error)
                 : cli_print_report(&in, args->json ? HONE_REPORT_FINDINGS_JSON : HONE_REPORT_TEXT);
  hone_findings_destroy(findings);
  hone_recording_free(&p);
  return code;
}

static const cli_option options[] = {
    CLI_OPT_IMPORT,
    {0, "thresholds", CLI_FLAG, CLI_FIELD(list_thresholds), NULL, "print all thresholds with their sources"},
    CLI_OPT_FINDINGS,
    CLI_OPT_FLOAT,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_diagnose = {
    "diagnose",
    "FILE...",
    "find what is slow in a profile of another tool, and why",
    "Reads what trtexec, ONNX Runtime, msprof and others have measured; nothing is run. Several files of one "
    "run (a profile, its times and its layer information) are joined. \"-\" is standard input, gz is "
    "unpacked. Findings carry evidence, cause, command and predicted gain. "
    "docs/reference/commands/diagnose.md lists the formats.",
    options,
    0,
    100000,
    run};
