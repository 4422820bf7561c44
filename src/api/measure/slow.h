/* The slowest of many runs: when, how slow, in which step or pause. */
#ifndef HN_API_MEASURE_SLOW_H
#define HN_API_MEASURE_SLOW_H

#include <hone/measure.h>

typedef struct hn_slow_kept {
  hone_slow_place place;
  bool fresh; /* the stretch of time around it has not ended */
} hn_slow_kept;

typedef struct hn_slow_watch {
  const hone_subject *subject;
  bool records;      /* steps, that is: not of an accelerator */
  hone_facts *facts; /* of the runs since the last look */
  uint32_t room, n;  /* runs that fit; that are there */
  double *time_s, *ms;
  hone_disturbance *seen;
  double usual_ms; /* the runs' median so far; 0: none yet */
  size_t steps;
  double *usual_step, *usual_pause;        /* [steps] ms */
  hn_slow_kept worst[HONE_MOST_SLOW_RUNS]; /* by what they lost, worst first */
  size_t n_worst;
} hn_slow_watch;

/* hn_slow_end in any case. */
hone_status hn_slow_begin(hn_slow_watch *watch, const hone_subject *subject, hone_error *error);
/* After every run: when it ended, how long it took, and what the system did meanwhile. */
hone_status hn_slow_saw(hn_slow_watch *watch, double time_s, double ms, hone_disturbance seen,
                        hone_error *error);
/* After a stretch of runs: looks at them, and notes what the system was like meanwhile. */
hone_status hn_slow_stretch(hn_slow_watch *watch, double clock_mhz, double others_pct, double throttles,
                            hone_error *error);
/* Keeps those that are slow beside the final median; worst first. Into out[HONE_MOST_SLOW_RUNS]; returns how
 * many. */
size_t hn_slow_settle(hn_slow_watch *watch, double usual_ms, double usual_clock_mhz, hone_slow_place *out);
void hn_slow_end(hn_slow_watch *watch);

#endif
