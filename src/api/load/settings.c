/* LoadGen's settings, and the seeds of MLPerf's rules. */
#include <hone/load.h>

const char *hone_scenario_name(hone_scenario s) {
  static const char *const name[] = {"single", "multi", "server", "offline", "closed"};
  return (unsigned)s < sizeof name / sizeof *name ? name[s] : NULL;
}

void hone_load_defaults(hone_scenario scenario, hone_load_settings *out) {
  if (!out) return;
  *out = (hone_load_settings){.scenario = scenario,
                              .percentile = scenario == HONE_SCENARIO_SINGLE ? 0.90 : 0.99,
                              .min_duration_ns = 10000000000u,
                              .min_queries = scenario == HONE_SCENARIO_MULTI ? 662 : 100,
                              .query_samples = 8,
                              .samples = 1,
                              .qps = 1,
                              .bound_ns = 15000000,
                              .set_seed = 2085463073848966840u,
                              .sample_seed = 2747215439041700203u,
                              .schedule_seed = 16159082839903944936u};
}
