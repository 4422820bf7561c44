/* What hone gate measures and says; commands/gate.c decides what to compare. */
#ifndef HONE_CLI_GATE_H
#define HONE_CLI_GATE_H

#include "cli/cli.h"

enum { GATE_MOST = 500 };

/* One side: a shell command, or times that were measured earlier. */
typedef struct gate_side {
  char label[300];
  char command[6000]; /* "": none, only `ms` */
  double ms[GATE_MOST];
  uint32_t n;
} gate_side;

typedef struct gate_run {
  gate_side old, new;
  bool wall;                   /* what counts is the whole process, not the latency that it reports */
  bool given;                  /* that was asked for; otherwise it is found out */
  bool timeout;                /* --max-seconds ended it */
  double threshold;            /* 0.05 */
  double seconds;              /* that it took */
  char model[300], doubt[600]; /* doubt: why earlier times cannot be compared; "" when they can */
  hone_gate_result result;
} gate_run;

/* HONE_ERROR_INPUT with the first difference when the two models (or saved plans) take or give something
 * else.
 */
hone_status gate_same_network(const cli_args *args, const char *old, const char *new, hone_error *error);

/* Runs the command once. ms: the latency of its report (wall false) or the time of the process. has_report:
 * whether it printed one. */
hone_status gate_run_once(gate_side *side, bool wall, double deadline_ms, double *ms, bool *has_report,
                          hone_error *error);
/* Pairs of both commands in turn until the gate has decided, --max-seconds are over or `most` are done. */
hone_status gate_run_pairs(gate_run *g, uint32_t most, double max_seconds, hone_error *error);
/* n processes of the new side alone, against times that the old one has. */
hone_status gate_run_new(gate_run *g, uint32_t n, double max_seconds, hone_error *error);

/* Everything that is printed or written. Exit codes: 1 worse, 5 no verdict, else 0. */
int gate_exit(const gate_run *g);
json_t *gate_json(const gate_run *g);
void gate_text(const gate_run *g);
/* ::error, ::warning or ::notice for GitHub. */
void gate_annotate(const gate_run *g, FILE *out);
hone_status gate_markdown(const gate_run *g, const char *path, bool append, hone_error *error);
hone_status gate_junit(const gate_run *g, const char *path, hone_error *error);

#endif
