/* Ways to compute the same, measured side by side. */
#ifndef HONE_CLI_OP_RACE_H
#define HONE_CLI_OP_RACE_H

#include "cli/op/sample.h"
#include "cli/op/subject.h"

typedef enum op_role {
  OP_TACTIC, /* the operator by one of its tactics */
  OP_APART,  /* the nodes of its pattern, a step each */
  OP_WITHOUT /* the same nodes as hone runs them when the operator is not there */
} op_role;

typedef struct op_version {
  op_role role;
  char name[200]; /* the tactic; the steps */
  char why[300];  /* not "": it cannot be measured, for this reason */
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  const hone_tensor *in[OP_MOST];
  double bytes; /* that its steps read and write */
  double *us;   /* [n] */
  uint32_t n;
  hone_sample_stats stats; /* in microseconds */
} op_version;

/* A plan of the text, whose inputs are the sample's, and a context. What cannot be made is said in `why`;
 * memory alone is an error. tactic: that the plan must have; NULL: any. */
hone_status op_version_make(const op_subject *s, const op_sample *x, op_version *v, const char *text,
                            const char *tactic, const char *device, uint32_t threads, hone_error *error);
void op_version_drop(op_version *version);
/* Is the tactic one of this device ("cpu", "cuda:1"; NULL: "cpu")? */
bool op_runs_on(const hone_tactic_desc *tactic, const char *device);

enum { OP_VERSIONS = 12 };

/* One operator at one shape. */
typedef struct op_race {
  const op_subject *subject;
  op_sample sample;
  char shape[300];  /* "f32[1x64x56x56]" */
  char apart[6000]; /* text of the nodes it replaces; "": it has no pattern */
  op_version version[OP_VERSIONS];
  uint32_t n;
} op_race;

/* Plans of all tactics of the device ("cpu", "cuda:1"; NULL: "cpu"). Free it in any case. */
hone_status op_race_tactics(op_race *race, const char *device, uint32_t threads, hone_error *error);
/* Plans of what the operator replaces; the plugins are unloaded by then. */
hone_status op_race_nodes(op_race *race, const char *device, uint32_t threads, hone_error *error);
/* In turns, so that all see the same machine. */
hone_status op_race_run(op_race *race, uint32_t warmups, uint32_t runs, hone_error *error);
void op_race_free(op_race *race);

#endif
