/* Prints the schedule of a test: a line for every query, when it is due (ns) and its samples.
 * load_schedule SCENARIO SAMPLES QPS MIN_MS MIN_QUERIES QUERY_SAMPLES SET_SEED SAMPLE_SEED SCHEDULE_SEED
 * QUERIES At most QUERIES of them: those of a single or multi stream never end. */
#include "api/load/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool scenario_of(const char *name, hone_scenario *out) {
  for (*out = 0; hone_scenario_name(*out); ++*out)
    if (strcmp(hone_scenario_name(*out), name) == 0) return true;
  return false;
}

int main(int argc, char **argv) {
  hone_scenario scenario;
  hone_load_settings s;
  hone_error error = {0};
  hn_schedule d;
  if (argc != 11 || !scenario_of(argv[1], &scenario)) return 2;
  hone_load_defaults(scenario, &s);
  s.samples = (uint32_t)strtoul(argv[2], NULL, 10);
  s.qps = strtod(argv[3], NULL);
  s.min_duration_ns = strtoull(argv[4], NULL, 10) * 1000000;
  s.min_queries = strtoull(argv[5], NULL, 10);
  s.query_samples = (uint32_t)strtoul(argv[6], NULL, 10);
  s.set_seed = strtoull(argv[7], NULL, 10);
  s.sample_seed = strtoull(argv[8], NULL, 10);
  s.schedule_seed = strtoull(argv[9], NULL, 10);
  const uint64_t most = strtoull(argv[10], NULL, 10);
  if (hn_schedule_open(&s, &d, &error) != HONE_OK) {
    fprintf(stderr, "%s\n", error.what);
    return 1;
  }
  while (d.made < most && hn_schedule_more(&d)) {
    printf("%" PRIu64, hn_schedule_next(&d));
    for (uint64_t k = 0; k < d.size; k++) printf(" %u", hn_schedule_sample(&d, k));
    printf("\n");
  }
  hn_schedule_close(&d);
  return 0;
}
