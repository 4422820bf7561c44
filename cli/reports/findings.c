/* Explaining: thresholds and language of the command line. */
#include "cli/reports/findings.h"
#include "cli/options/importing.h"
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hone_status cli_language(const cli_args *args, hone_language *language, hone_error *error) {
  static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
  *language = HONE_LANGUAGE_EN;
  if (args->lang) {
    if (hone_language_parse(args->lang, language)) return HONE_OK;
    *error = (hone_error){.status = HONE_ERROR_USAGE};
    snprintf(error->what, sizeof error->what, "--lang wants en or zh, not '%.40s'", args->lang);
    return HONE_ERROR_USAGE;
  }
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *value = getenv(variables[i]);
    if (!value || !*value) continue;
    hone_language_parse(value, language);
    /* Chinese needs a terminal that shows it. */
    if (*language == HONE_LANGUAGE_ZH && !cli_unicode()) *language = HONE_LANGUAGE_EN;
    break;
  }
  return HONE_OK;
}

hone_status cli_diagnosis_open(const cli_args *args, cli_diagnosis *d, hone_error *error) {
  *d = (cli_diagnosis){0};
  hone_status status = cli_language(args, &d->options.language, error);
  if (status == HONE_OK && args->thresholds.n) {
    d->thresholds = hone_thresholds_create();
    if (!d->thresholds) {
      *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "out of memory for thresholds"};
      status = HONE_ERROR_MEMORY;
    }
    for (size_t i = 0; i < args->thresholds.n && status == HONE_OK; i++)
      status = hone_thresholds_parse(d->thresholds, args->thresholds.item[i], error);
  }
  d->options.thresholds = d->thresholds;
  if (status == HONE_OK && args->float_files.n)
    status = cli_import(args, args->float_files.item, args->float_files.n, &d->in_float, error);
  d->options.float_profile = d->in_float.profile;
  if (status != HONE_OK) cli_diagnosis_close(d);
  return status;
}

void cli_diagnosis_close(cli_diagnosis *d) {
  hone_recording_free(&d->in_float);
  hone_thresholds_destroy(d->thresholds);
  *d = (cli_diagnosis){0};
}

hone_status cli_diagnose(const cli_args *args, const hone_profile *profile, hone_findings **findings,
                         hone_error *error) {
  cli_diagnosis d;
  hone_status status = cli_diagnosis_open(args, &d, error);
  if (status == HONE_OK) status = hone_diagnose(profile, &d.options, findings, error);
  cli_diagnosis_close(&d);
  return status;
}

int cli_print_thresholds(const cli_args *args) {
  size_t n;
  const hone_threshold_info *list = hone_threshold_list(&n);
  hone_thresholds *t = hone_thresholds_create();
  hone_error error = {0};
  hone_status status = t ? HONE_OK : HONE_ERROR_MEMORY;
  for (size_t i = 0; i < args->thresholds.n && status == HONE_OK; i++)
    status = hone_thresholds_parse(t, args->thresholds.item[i], &error);
  int code = 0;
  if (status != HONE_OK) {
    code = t ? cli_report(&error) : cli_error(HONE_ERROR_MEMORY, "out of memory");
  } else if (args->json) {
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++)
      json_array_append_new(rows, json_pack("{s:s,s:f,s:f,s:s,s:s}", "name", list[i].name, "value",
                                            hone_thresholds_get(t, list[i].name), "default", list[i].value,
                                            "unit", list[i].unit, "source", list[i].source));
    code = cli_print_json(json_pack("{s:o}", "thresholds", rows));
  } else {
    for (size_t i = 0; i < n; i++)
      cli_print("%-20s %8g %-9s %s\n", list[i].name, hone_thresholds_get(t, list[i].name), list[i].unit,
                list[i].source);
    code = cli_flush();
  }
  hone_thresholds_destroy(t);
  return code;
}
