/* Explaining, as the command line wants it. */
#ifndef HONE_CLI_FINDINGS_H
#define HONE_CLI_FINDINGS_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* --lang, else the locale for messages. */
hone_status cli_language(const cli_args *args, hone_language *language, hone_error *error);

/* How the command line wants findings: thresholds, language, the network in float. */
typedef struct cli_diagnosis {
  hone_diagnose_options options; /* of what follows */
  hone_thresholds *thresholds;
  hone_recording in_float;
} cli_diagnosis;

hone_status cli_diagnosis_open(const cli_args *args, cli_diagnosis *out, hone_error *error);
void cli_diagnosis_close(cli_diagnosis *diagnosis);
/* Findings as the command line wants them. */
hone_status cli_diagnose(const cli_args *args, const hone_profile *profile, hone_findings **findings,
                         hone_error *error);
/* The table of thresholds; the exit code. */
int cli_print_thresholds(const cli_args *args);

#endif
