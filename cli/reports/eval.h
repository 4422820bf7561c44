/* What hone eval has measured, as a table and as JSON. */
#ifndef HONE_CLI_EVAL_H
#define HONE_CLI_EVAL_H

#include "cli/options/options.h"

#include <hone/hone.h>
#include <jansson.h>

/* One model on the data. */
typedef struct cli_evaluation {
  const char *path; /* NULL: none */
  hone_eval_result result;
  int64_t batch;
  char precision[16], input[128];
} cli_evaluation;

typedef struct cli_eval_report {
  const cli_args *args;
  const cli_evaluation *pair; /* [2] */
  const hone_dataset *set;
  const hone_preprocess *preprocess;
  const hone_eval_change *change; /* NULL: nothing was tested */
  uint64_t problems;              /* of the set, left out before anything was read */
} cli_eval_report;

json_t *cli_eval_json(const cli_eval_report *report);
int cli_eval_text(const cli_eval_report *report); /* the exit code */

#endif
