/* The slowest of many runs: when, how slow, in which step or pause. (hone bench --duration) */
#ifndef HONE_CLI_SLOW_H
#define HONE_CLI_SLOW_H

#include "cli/cli.h"

enum { SLOW_MOST = 32, SLOW_NAME = 128 };

/* How many times the usual latency a run must take to be called slow; as hone_spread_explain. */
#define SLOW_FACTOR 1.5

typedef struct slow_run {
  hone_slow_run facts; /* its names lie below */
  char step[SLOW_NAME], pause_before[SLOW_NAME];
  bool fresh; /* the stretch of time around it has not ended */
} slow_run;

typedef struct slow_watch {
  cli_session *session;
  bool records;      /* steps, that is: not of an accelerator */
  hone_facts *facts; /* of the runs since the last look */
  uint32_t room, n;  /* runs that fit; that are there */
  double *time_s, *ms;
  hone_disturbance *seen;
  double usual_ms; /* the runs' median so far; 0: none yet */
  size_t steps;
  double *usual_step, *usual_pause; /* [steps] ms */
  slow_run worst[SLOW_MOST];        /* by what they lost, worst first */
  size_t n_worst;
} slow_watch;

hone_status slow_begin(slow_watch *watch, cli_session *session, const cli_args *args, hone_error *error);
/* After every run. */
hone_status slow_saw(slow_watch *watch, double time_s, double ms, hone_disturbance seen, hone_error *error);
/* After a stretch of runs: looks at them, and notes what the system was like meanwhile. */
hone_status slow_stretch(slow_watch *watch, double clock_mhz, double others_pct, double throttles,
                         hone_error *error);
/* Keeps those that are slow beside the final median; worst first. */
void slow_settle(slow_watch *watch, double usual_ms, double usual_clock_mhz);
void slow_end(slow_watch *watch);
/* The slowest, one by one. */
void slow_text(const slow_watch *watch);
json_t *slow_json(const slow_watch *watch);

#endif
