/* Latency against throughput with more and more runs in flight. */
#include "base/error.h"

#include <hone/load.h>

static const double worth_it = 1.05; /* what another context must bring */

hone_status hone_load_curve(const hone_load_target *target, const hone_load_settings *settings,
                            const hone_watch *watch, hone_load_result *points, uint32_t *n,
                            hone_error *error) {
  if (!target || !settings || !points || !n)
    return hn_fail(error, HONE_ERROR_USAGE, "a curve wants a target, settings and places for its points");
  *n = 0;
  hone_load_settings s = *settings;
  s.scenario = HONE_SCENARIO_CLOSED;
  for (uint32_t k = 1; k <= target->in_flight; k++) {
    hone_load_target t = *target;
    t.in_flight = k;
    const hone_status status = hone_load_run(&t, &s, watch, &points[*n], error);
    if (status != HONE_OK) return status;
    if (points[*n].interrupted) return HONE_OK;
    ++*n;
  }
  return HONE_OK;
}

uint32_t hone_load_knee(const hone_load_result *points, uint32_t n) {
  uint32_t knee = 0;
  for (uint32_t i = 1; points && i < n; i++)
    if (points[i].rate > worth_it * points[knee].rate) knee = i;
  return knee;
}
