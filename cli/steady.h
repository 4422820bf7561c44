/* Long runs: does latency, memory, temperature or clock move? (hone bench --duration) */
#ifndef HONE_CLI_STEADY_H
#define HONE_CLI_STEADY_H

#include "cli/slow.h"

#include <sys/resource.h>

enum { STEADY_WINDOWS = 120 };

/* What is sampled at the end of every window: name in JSON, and drift of which is looked at. */
#define STEADY_SERIES(X)                                                                                     \
  X(latency_ms) /* median of the window's runs */                                                            \
  X(p95_ms)                                                                                                  \
  X(rss_mb)                                                                                                  \
  X(temperature_c)                                                                                           \
  X(clock_mhz)                                                                                               \
  X(others_pct) /* processor time that other processes took */                                               \
  X(involuntary_switches)                                                                                    \
  X(voluntary_switches)                                                                                      \
  X(minor_faults)                                                                                            \
  X(major_faults)

typedef struct steady_run {
  double seconds;
  size_t n;
  uint64_t runs;
  double time_s[STEADY_WINDOWS + 1];
#define X(name) double name[STEADY_WINDOWS + 1];
  STEADY_SERIES(X)
#undef X
  hone_drift latency, rss, temperature, clock;
  double throttles; /* thermal slow-downs meanwhile; NaN */
  hone_system_sample last;
  char device_unread[320]; /* why an accelerator's sensors cannot be read; "" */
  slow_watch slow;         /* the slowest runs */
  double measured_ms;      /* all runs together */
  cli_profile record;
  hone_findings *findings;
} steady_run;

/* "90", "30s", "10m", "1h" -> seconds; negative: none of these. */
double steady_seconds(const char *text);
/* What happened to the process since, and from now on. */
hone_disturbance steady_disturbance(struct rusage *since);
/* Runs for so long. samples and seen get up to `most` runs, evenly spread over the time; *kept counts them.
 */
hone_status steady_measure(cli_session *session, const cli_args *args, const char *path, double seconds,
                           double *samples, hone_disturbance *seen, uint32_t most, uint32_t *kept,
                           steady_run *out, hone_error *error);
void steady_free(steady_run *run);
json_t *steady_json(const steady_run *run);
void steady_text(const steady_run *run);
/* Celsius of the processor or the accelerator now; NaN where it cannot be read. */
double steady_temperature(const cli_args *args);
/* Lowest and highest of the readings that succeeded; false: none did. */
bool steady_range(const double *celsius, size_t n, double *low, double *high);

#endif
