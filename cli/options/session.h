/* From a file and options to a context that is ready to run, with its inputs. */
#ifndef HONE_CLI_SESSION_H
#define HONE_CLI_SESSION_H

#include "cli/options/arriving.h"
#include "cli/options/options.h"
#include "cli/options/precision.h"

#include <hone/hone.h>

/* A model ready to run with inputs. */
typedef struct cli_session {
  hone_model *model;
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_binding *bindings;
  uint32_t n_bindings;
  cli_precision precision;
  uint32_t n_inputs;
  hone_data *data;           /* [n_inputs] */
  const hone_tensor **feeds; /* [n_inputs] for hone_context_run */
  cli_pinned pinned;         /* what the feeds are, after cli_session_pin */
  hone_chains chains;        /* of the next plan */
  double load_ms;            /* start to ready context, or with plan_only to the plan */
  bool saved;                /* the plan came from a file; the model is the plan's */
  bool borrows;              /* all but plan, context and feeds belong to another session */
} cli_session;

/* Named as models and saved plans are, and not as records of runs. */
bool cli_is_model(const char *name);
/* From the file to engine, bindings and the inputs that were given, without a plan. */
hone_status cli_session_load(cli_session *session, const cli_args *args, const char *path, hone_error *error);
/* What the library is to plan it with (level: --level). */
hone_plan_options cli_session_options(const cli_session *session, const cli_args *args, int level);
/* Notes on standard error what its first plan decided: --batch that changes nothing, shapes that hone chose.
 */
void cli_session_note(const cli_session *session, const cli_args *args, const char *path,
                      const hone_plan *plan);
/* What the device had to put right while it got ready. */
void cli_session_warn(const cli_session *session);
/* No plan can be made: the shape of an input file may be why. */
void cli_session_hint(const cli_session *session, const cli_args *args, hone_error *error);
/* Everything from the file to a ready context with its inputs. */
hone_status cli_session_open(cli_session *session, const cli_args *args, const char *path, hone_error *error);
/* Plans the open session's model again at another level (the inputs stay). */
hone_status cli_session_replan(cli_session *session, const cli_args *args, int level, hone_error *error);
/* A second plan beside an open session's, with the same engine and inputs; close it first. */
hone_status cli_session_fork(const cli_session *from, const cli_args *args, int level, cli_session *out,
                             hone_error *error);
/* Copies the inputs of an open session to pinned memory. */
hone_status cli_session_pin(cli_session *session, hone_error *error);
void cli_session_close(cli_session *session);
/* In place of closing as the last thing that a command does: on a processor the system takes everything at
 * once when the process ends, and to take it apart before is a hundredth of a small model's run. */
void cli_session_leave(cli_session *session, const cli_args *args);
/* Rows of input 0: what a throughput counts. */
int64_t cli_batch(const cli_session *session);
/* Reads the --input files again, as the stage before the next run. */
hone_status cli_session_reload(cli_session *session, const cli_args *args, hone_error *error);
hone_status cli_session_run(cli_session *session, const cli_args *args, hone_error *error);
hone_status cli_check_device(const cli_args *args, hone_error *error);
/* The one input that no --input fills, for `what`; HONE_ERROR_USAGE: there is none, or several. */
hone_status cli_session_open_input(const cli_session *session, const cli_args *args, const char *what,
                                   uint32_t *input, hone_error *error);
uint32_t cli_threads(const cli_session *session, const cli_args *args);

#endif
