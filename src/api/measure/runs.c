/* Plain runs, and what the system did during each. */
#include "api/measure/disturbance.h"
#include "api/measure/watch.h"
#include "base/error.h"

hone_disturbance hn_disturbance(struct rusage *since) {
  struct rusage now;
  getrusage(RUSAGE_SELF, &now);
  const hone_disturbance d = {(uint32_t)(now.ru_nivcsw - since->ru_nivcsw),
                              (uint32_t)(now.ru_minflt - since->ru_minflt),
                              (uint32_t)(now.ru_majflt - since->ru_majflt)};
  *since = now;
  return d;
}

hone_status hone_runs_measure(const hone_subject *s, uint32_t runs, double max_seconds,
                              const hone_watch *watch, double *samples, hone_disturbance *seen, uint32_t *n,
                              hone_error *error) {
  if (!s || !s->plan || !s->context || (!s->in && hone_plan_inputs(s->plan)) || !samples || !n)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_runs_measure needs a subject with plan, context and inputs, and places for samples");
  const double start = hn_watch_ms();
  hone_status status = HONE_OK;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  *n = 0;
  for (uint32_t i = 0; i < runs && status == HONE_OK; i++) {
    if (i && max_seconds > 0 && hn_watch_ms() - start >= max_seconds * 1e3) break;
    double t = hn_watch_ms();
    status = hn_watch_run(watch, s->context, s->in, max_seconds, error);
    t = hn_watch_ms() - t;
    if (status != HONE_OK) break;
    const hone_disturbance d = hn_disturbance(&usage);
    if (seen) seen[*n] = d;
    samples[(*n)++] = t;
    if (!hn_watch_tell(watch, "bench", i + 1, runs)) status = hn_watch_stopped(error);
  }
  return status;
}
