/* hone compare: what changed between two profiles, whatever tools recorded them. */
#include "cli/options/files.h"
#include "cli/reports/findings.h"
#include "cli/options/importing.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 30, FILES_MOST = 64 };

/* One side: a file, or the files of one run with commas between them (where no file has that whole name). */
static hone_status import_side(const cli_args *args, const char *side, hone_recording *out,
                               hone_error *error) {
  const char *paths[FILES_MOST] = {side};
  size_t n = 1;
  char *copy = strchr(side, ',') && access(side, F_OK) != 0 ? strdup(side) : NULL;
  if (copy) {
    n = 0;
    for (char *next = copy, *path; n < FILES_MOST && (path = strsep(&next, ","));)
      if (*path) paths[n++] = path;
  }
  hone_status status = cli_import(args, paths, n, out, error);
  free(copy);
  return status;
}

/* What the page is called: the model of both, or what tells the two apart. */
static const char *title_of(const cli_args *args, const hone_recording *p, char *buf, size_t size) {
  const char *name[2];
  bool known = true;
  for (int i = 0; i < 2; i++) {
    name[i] = hone_facts_get_meta(p[i].facts)->model;
    known = known && name[i];
    if (!name[i]) name[i] = args->rest.item[i];
    const char *slash = strrchr(name[i], '/');
    if (slash && slash[1]) name[i] = slash + 1;
  }
  if (known && strcmp(name[0], name[1]) == 0) return NULL;
  snprintf(buf, size, "%s \u2192 %s", name[0], name[1]);
  return buf;
}

static int run(const cli_args *args) {
  hone_recording p[2] = {{0}};
  hone_comparison *comparison = NULL;
  hone_error error = {0};
  hone_language language;
  hone_status status = cli_language(args, &language, &error);
  if (status == HONE_OK) status = import_side(args, args->rest.item[0], &p[0], &error);
  if (status == HONE_OK) status = import_side(args, args->rest.item[1], &p[1], &error);
  if (status == HONE_OK)
    status = hone_compare(p[0].profile, p[1].profile, &(hone_compare_options){.min_effect_pct = args->effect},
                          &comparison, &error);
  char title[512];
  hone_report_input in = {.title = status == HONE_OK ? title_of(args, p, title, sizeof title) : NULL,
                          .baseline = p[0].profile,
                          .optimized = p[1].profile,
                          .comparison = comparison,
                          .language = language,
                          .max_layers = args->rows ? (size_t)args->rows : ROWS,
                          .sections = HONE_SECTION_COMPARISON};
  if (status == HONE_OK) status = cli_keep_inputs(args, args->output, &error);
  if (status == HONE_OK && args->output)
    status = cli_file_report(args->output, &in, HONE_REPORT_HTML, &error);
  int code = 0;
  if (status != HONE_OK)
    code = cli_report(&error);
  else if (args->json || !args->output)
    code = cli_print_report(&in, args->json ? HONE_REPORT_COMPARISON_JSON : HONE_REPORT_TEXT);
  hone_comparison_destroy(comparison);
  hone_recording_free(&p[0]);
  hone_recording_free(&p[1]);
  return code;
}

static const cli_option options[] = {
    CLI_OPT_IMPORT,
    {0, "effect", CLI_NUMBER, CLI_FIELD(effect), "PCT", "smaller differences are called the same (5)"},
    {0, "rows", CLI_COUNT, CLI_FIELD(rows), "N", "print the N largest differences (30)"},
    {'o', "output", CLI_TEXT, CLI_FIELD(output), "FILE", "write both side by side as a self-contained page"},
    CLI_OPT_LANG,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_compare = {
    "compare",
    "BEFORE AFTER",
    "what got slower, faster, new, gone or fused between two profiles",
    "Each is a file of hone profile -o, trtexec, ONNX Runtime or another tool that hone diagnose reads, or "
    "the files of one run with commas between them. Layers are aligned by ONNX node, else by name, else by "
    "type and order; a difference counts when it is large enough and the iterations of both profiles rule "
    "out chance. One process each says little about small differences of whole programs: hone gate does "
    "that. Exit code 0 whatever changed.",
    options,
    2,
    2,
    run};
