/* The controller of worker counts against simulated stages: no thread, no clock, the same every time. It must
 * reach within a tenth of what the best fixed numbers of workers do, and not use many more of them. */
#include "api/pipeline/control.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 8, QUEUE = 12, STEP_US = 100 };

typedef struct load {
  const char *name;
  double work_ms[HONE_STAGES];  /* of an item */
  double later_ms[HONE_STAGES]; /* from half of the time on; 0: the same */
  double cores;                 /* that all share; 0: there are enough */
  double infer_cores;           /* that a run keeps busy */
  double every_ms;              /* the source has an item so often; 0: always */
} load;

static const load loads[] = {
    {.name = "slow decoding, fast model", .work_ms = {8, 2, 0.5}},
    {.name = "slow model", .work_ms = {3, 10, 1}},
    {.name = "slow post-processing, shared processors", .work_ms = {4, 4, 9}, .cores = 8, .infer_cores = 2},
    {.name = "larger pictures later", .work_ms = {3, 3, 1}, .later_ms = {14, 3, 1}},
    {.name = "slow source", .work_ms = {8, 2, 1}, .every_ms = 10},
};

typedef struct stage {
  double left[MOST]; /* ms of the item that a worker has; 0: none */
  uint32_t running, waiting;
} stage;

typedef struct world {
  const load *l;
  stage s[HONE_STAGES];
  uint64_t done, seed;
  double source_ms;
  hn_control_sample sum; /* times steps */
  double worker_steps[HONE_STAGES];
} world;

/* 0.7 to 1.3: pictures differ. */
static double jitter(world *w) {
  w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
  return 0.7 + 0.6 * (double)(w->seed >> 40) / 16777216.0;
}

static void begin_items(world *w, const uint32_t workers[HONE_STAGES], bool late) {
  for (int i = HONE_STAGES - 1; i >= 0; i--) {
    stage *s = &w->s[i];
    for (uint32_t k = 0; k < workers[i]; k++) {
      const bool room = i + 1 == HONE_STAGES || w->s[i + 1].waiting + s->running < QUEUE;
      if (s->left[k] > 0 || !s->waiting || !room) continue;
      const double *ms = late && w->l->later_ms[0] > 0 ? w->l->later_ms : w->l->work_ms;
      s->left[k] = ms[i] * jitter(w);
      s->waiting--;
      s->running++;
    }
  }
}

static void pass_time(world *w) {
  double cores = 0;
  for (int i = 0; i < HONE_STAGES; i++)
    cores += w->s[i].running * (i == HONE_STAGE_INFER && w->l->infer_cores > 0 ? w->l->infer_cores : 1);
  const double ms = STEP_US / 1e3 * (w->l->cores > 0 && cores > w->l->cores ? w->l->cores / cores : 1);
  for (int i = 0; i < HONE_STAGES; i++)
    for (uint32_t k = 0; k < MOST; k++) {
      stage *s = &w->s[i];
      if (!(s->left[k] > 0) || (s->left[k] -= ms) > 0) continue;
      s->left[k] = 0;
      s->running--;
      if (i + 1 < HONE_STAGES)
        w->s[i + 1].waiting++;
      else
        w->done++;
    }
}

/* Items a second in the last quarter (of each half, where the load changes: the smaller share of what `best`
 * has there), and the workers there on average. */
static double simulate(const load *l, const uint32_t fixed[HONE_STAGES], double seconds, bool late,
                       double workers[HONE_STAGES], bool show) {
  static const uint32_t most[] = {MOST, 1, MOST};
  world w = {.l = l, .seed = 1};
  hn_control c;
  const uint32_t from[HONE_STAGES] = {fixed ? fixed[0] : 0, 1, fixed ? fixed[2] : 0};
  hn_control_open(&c, &(hone_pid_gains){0}, from, most, (uint32_t[]){MOST, QUEUE, QUEUE});
  const uint64_t steps = (uint64_t)(seconds * 1e6) / STEP_US,
                 period = (uint64_t)(c.gains.period * 1e6) / STEP_US;
  uint64_t before = 0;
  memset(workers, 0, HONE_STAGES * sizeof *workers);
  for (uint64_t n = 0; n < steps; n++) {
    const bool tail = n >= steps - steps / 4;
    w.source_ms += STEP_US / 1e3;
    if (l->every_ms > 0)
      for (; w.source_ms >= l->every_ms; w.source_ms -= l->every_ms) w.s[0].waiting++;
    else
      w.s[0].waiting = MOST;
    begin_items(&w, c.workers, late);
    for (int i = 0; i < HONE_STAGES; i++) {
      w.sum.waiting[i] += w.s[i].waiting;
      w.sum.running[i] += w.s[i].running;
      if (tail) workers[i] += c.workers[i];
    }
    pass_time(&w);
    if (n + steps / 4 == steps) before = w.done;
    if ((n + 1) % period) continue;
    for (int i = 0; i < HONE_STAGES; i++)
      w.sum.waiting[i] /= (double)period, w.sum.running[i] /= (double)period;
    w.sum.seconds = c.gains.period;
    if (show)
      printf("%5.1f s: %u %u, fill %.2f %.2f, at work %.2f %.2f\n", (double)(n + 1) * STEP_US / 1e6,
             c.workers[0], c.workers[2], hn_control_fill(&c, &w.sum, 1), hn_control_fill(&c, &w.sum, 2),
             w.sum.running[0], w.sum.running[2]);
    hn_control_step(&c, &w.sum);
    w.sum = (hn_control_sample){0};
  }
  for (int i = 0; i < HONE_STAGES; i++) workers[i] /= (double)(steps / 4);
  return (double)(w.done - before) / (seconds / 4);
}

/* The best that fixed numbers of workers do, and the fewest that do nearly as well. */
static double best_fixed(const load *l, bool late, uint32_t fewest[HONE_STAGES]) {
  double rate[MOST + 1][MOST + 1], best = 0, workers[HONE_STAGES];
  for (uint32_t a = 1; a <= MOST; a++)
    for (uint32_t b = 1; b <= MOST; b++) {
      rate[a][b] = simulate(l, (uint32_t[]){a, 1, b}, 2, late, workers, false);
      if (rate[a][b] > best) best = rate[a][b];
    }
  uint32_t sum = 2 * MOST + 1;
  for (uint32_t a = 1; a <= MOST; a++)
    for (uint32_t b = 1; b <= MOST; b++)
      if (rate[a][b] >= 0.97 * best && a + b < sum) {
        sum = a + b;
        fewest[0] = a, fewest[2] = b;
      }
  return best;
}

static void converges(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
    for (int late = 0; late <= (loads[i].later_ms[0] > 0); late++) {
      uint32_t fewest[HONE_STAGES] = {0};
      double workers[HONE_STAGES];
      const double best = best_fixed(&loads[i], late, fewest);
      const double got = simulate(&loads[i], NULL, 8, late, workers, false);
      printf("%-40s best %.1f/s with %u and %u workers, got %.1f/s (%.1f %%) with %.2f and %.2f\n",
             loads[i].name, best, fewest[0], fewest[2], got, 100 * got / best, workers[0], workers[2]);
      if (got < 0.9 * best || workers[0] + workers[2] > fewest[0] + fewest[2] + 1.5) {
        simulate(&loads[i], NULL, 8, late, workers, true);
        fail_msg("%s", loads[i].name);
      }
    }
}

/* The three terms, one at a time. */
static void follows_the_formula(void **state) {
  (void)state;
  const hone_pid_gains g = {.kp = 3, .ki = 2, .kd = 0.5};
  hn_pid p = {0};
  assert_float_equal(hn_pid_step(&p, &g, 0.5, 0.1, -100, 100), 3 * 0.5 + 2 * 0.05, 1e-12);
  assert_float_equal(hn_pid_step(&p, &g, 0.7, 0.1, -100, 100), 3 * 0.7 + 2 * 0.12 + 0.5 * 0.2 / 0.1, 1e-12);
}

/* Long at its limit, and back at once when the error changes its sign. */
static void does_not_wind_up(void **state) {
  (void)state;
  const hone_pid_gains g = {.kp = 2, .ki = 8, .kd = 0.02};
  hn_pid p = {0};
  for (int i = 0; i < 1000; i++) assert_true(hn_pid_step(&p, &g, 1, 0.1, 1, 8) <= 8);
  assert_float_equal(hn_pid_step(&p, &g, 1, 0.1, 1, 8), 8, 0);
  assert_true(hn_pid_step(&p, &g, -0.5, 0.1, 1, 8) < 8);
  for (int i = 0; i < 20; i++) hn_pid_step(&p, &g, -0.5, 0.1, 1, 8);
  assert_float_equal(hn_pid_step(&p, &g, -0.5, 0.1, 1, 8), 1, 0);
}

static void keeps_what_is_fixed(void **state) {
  (void)state;
  hn_control c;
  hn_control_open(&c, &(hone_pid_gains){0}, (uint32_t[]){3, 2, 0}, (uint32_t[]){3, 2, 4},
                  (uint32_t[]){8, 8, 8});
  const hn_control_sample full = {.seconds = 0.1, .waiting = {8, 0, 8}, .running = {3, 2, 1}};
  for (int i = 0; i < 100; i++) hn_control_step(&c, &full);
  assert_int_equal(c.workers[0], 3);
  assert_int_equal(c.workers[1], 2);
  assert_int_equal(c.workers[2], 4); /* the most that it may have */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(follows_the_formula),
                                     cmocka_unit_test(does_not_wind_up),
                                     cmocka_unit_test(keeps_what_is_fixed), cmocka_unit_test(converges)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
