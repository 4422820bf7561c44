/* What hone gate says (gate_say.c); commands/gate.c decides what to compare. */
#ifndef HONE_CLI_GATE_H
#define HONE_CLI_GATE_H

#include "cli/options/options.h"

#include <hone/hone.h>
#include <jansson.h>
#include <stdio.h>

typedef struct gate_run {
  hone_gate_run run;
  char model[300], doubt[600]; /* doubt: why earlier times cannot be compared; "" when they can */
} gate_run;

/* HONE_ERROR_INPUT with the first difference when the two models (or saved plans) take or give something
 * else (gate_same.c). */
hone_status gate_same_network(const cli_args *args, const char *old, const char *new, hone_error *error);

/* Everything that is printed or written. Exit codes: 1 worse, 5 no verdict, else 0. */
int gate_exit(const gate_run *g);
json_t *gate_json(const gate_run *g);
void gate_text(const gate_run *g);
/* ::error, ::warning or ::notice for GitHub. */
void gate_annotate(const gate_run *g, FILE *out);
hone_status gate_markdown(const gate_run *g, const char *path, bool append, hone_error *error);
hone_status gate_junit(const gate_run *g, const char *path, hone_error *error);

#endif
