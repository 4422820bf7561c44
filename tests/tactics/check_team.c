/* check_team: phases that threads share (common/team.h) against the same phases done by one thread. Every
 * element of a phase reads two of the phase before, so that whoever begins too early is seen; more threads
 * than processors make the system take some away in the middle, so that shares are taken over. */
#include "backends/cpu/recurrent/team.h"
#include "base/pool.h"

#include <stdio.h>
#include <string.h>

enum { ELEMENTS = 777, PHASES = 401, RUNS = 12, MOST_THREADS = 5 };

static uint32_t values[2][ELEMENTS];

static void phase_share(void *arg, int64_t phase, uint32_t member, uint32_t members) {
  const uint32_t *from = values[phase % 2];
  uint32_t *to = values[(phase + 1) % 2];
  (void)arg;
  for (uint32_t i = ELEMENTS * member / members; i < ELEMENTS * (member + 1) / members; i++)
    to[i] = 3 * from[i] + from[(i * 7 + (uint32_t)phase) % ELEMENTS] + 1;
}

static void fill(uint32_t seed) {
  for (uint32_t i = 0; i < ELEMENTS; i++) values[0][i] = i * 2654435761u + seed;
}

int main(void) {
  int failures = 0;
  for (uint32_t threads = 1; threads <= MOST_THREADS; threads++) {
    hn_pool *pool;
    if (hn_pool_create(threads, &pool, NULL)) return 6;
    for (uint32_t run = 0; run < RUNS; run++) {
      uint32_t want[ELEMENTS];
      fill(run);
      for (int64_t phase = 0; phase < PHASES; phase++) phase_share(NULL, phase, 0, 1);
      memcpy(want, values[PHASES % 2], sizeof want);
      fill(run);
      hn_team_run(PHASES, threads, phase_share, NULL, hn_pool_parallel, pool);
      if (memcmp(want, values[PHASES % 2], sizeof want)) {
        printf("FAIL %u threads, run %u: other values than with one thread\n", threads, run);
        failures++;
      }
    }
    hn_pool_destroy(pool);
  }
  printf("%d runs of teams, %d failures\n", MOST_THREADS * RUNS, failures);
  return failures > 0;
}
