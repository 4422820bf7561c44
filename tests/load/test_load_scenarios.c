/* Courses, verdicts and the search for the highest rate, on a clock of the test's own; threads with runs that
 * take no time. */
#include "api/load/crew.h"
#include "api/load/early.h"
#include "api/load/peak.h"
#include "load/simulate.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MS = 1000000 };

static hone_load_settings settings(hone_scenario scenario, uint64_t ms, uint64_t queries) {
  hone_load_settings s;
  hone_load_defaults(scenario, &s);
  s.min_duration_ns = ms * MS, s.min_queries = queries, s.samples = 16;
  return s;
}

static uint64_t always(void *arg, uint64_t run, uint32_t worker, const hn_taken *taken) {
  (void)run, (void)worker, (void)taken;
  return *(const uint64_t *)arg;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

/* ---------------------------------------------------------------- one stream */

static void test_single_ends(void **state) {
  (void)state;
  uint64_t ns = 2 * MS;
  /* Begun at 0, 2, 4, 6, 8 and 10 ms: the last one is the first at or behind the duration. */
  hone_load_settings s = settings(HONE_SCENARIO_SINGLE, 10, 3);
  hone_load_result r = simulated(&s, 1, 1, always, &ns);
  assert_int_equal(r.queries, 6);
  assert_true(r.long_enough && r.enough_queries && r.fast_enough);
  assert_false(r.sure || r.valid);
  assert_int_equal(r.early_queries, 64);
  assert_non_null(strstr(r.why, "early stopping wants 64 queries with 1 late, not 6"));
  s.min_queries = 70; /* the count ends it */
  r = simulated(&s, 1, 1, always, &ns);
  assert_true(r.valid);
  assert_string_equal(r.why, "");
  assert_int_equal(r.queries, 70);
  assert_true(near(r.percentile_ms, 2) && near(r.early_ms, 2) && near(r.rate, 500) && near(r.busy, 1));
  assert_true(isnan(r.early_99_ms) && isnan(r.scheduled_rate));
}

/* 100, 99 ... 1 ms. */
static uint64_t falling(void *arg, uint64_t run, uint32_t worker, const hn_taken *taken) {
  (void)arg, (void)worker, (void)taken;
  return (100 - run % 100) * MS;
}

static void test_single_percentiles(void **state) {
  (void)state;
  const hone_load_settings s = settings(HONE_SCENARIO_SINGLE, 0, 100);
  const hone_load_result r = simulated(&s, 1, 1, falling, NULL);
  assert_true(r.valid);
  assert_true(near(r.p50_ms, 51) && near(r.p90_ms, 91) && near(r.p99_ms, 100) && near(r.mean_ms, 50.5));
  assert_true(near(r.min_ms, 1) && near(r.max_ms, 100) && near(r.percentile_ms, 91));
  assert_true(near(r.early_ms, 98)); /* of 100 the third slowest */
}

/* The longest run that may be: no query begins behind it, and the rest is missed. */
static void test_max_duration(void **state) {
  (void)state;
  uint64_t ns = MS;
  hone_load_settings s = settings(HONE_SCENARIO_SINGLE, 1000, 500);
  s.max_duration_ns = 100 * MS;
  const hone_load_result r = simulated(&s, 1, 1, always, &ns);
  assert_int_equal(r.queries, 101);
  assert_false(r.valid || r.long_enough || r.enough_queries);
  assert_non_null(strstr(r.why, "it took less than 1 s"));
  assert_non_null(strstr(r.why, "only 101 of at least 500 queries"));
}

/* ---------------------------------------------------------------- many samples */

static void test_multi(void **state) {
  (void)state;
  uint64_t ns = MS;
  const hone_load_settings s = settings(HONE_SCENARIO_MULTI, 0, 662);
  hone_load_result r = simulated(&s, 3, 1, always, &ns);
  assert_true(r.valid);
  assert_int_equal(r.samples, 662 * 8);
  assert_true(near(r.percentile_ms, 3) && near(r.min_ms, 3) && near(r.early_ms, 3)); /* 3, 3 and 2 */
  assert_true(near(r.rate, 8000.0 / 3) && near(r.busy, 8.0 / 9));
  r = simulated(&s, 1, 8, always, &ns); /* all in one run */
  assert_true(near(r.percentile_ms, 1));
  r = simulated(&s, 1, 5, always, &ns); /* 5 and 3 */
  assert_true(near(r.percentile_ms, 2));
}

static void test_offline(void **state) {
  (void)state;
  uint64_t ns = MS;
  hone_load_settings s = settings(HONE_SCENARIO_OFFLINE, 10, 100);
  s.qps = 10;
  hone_load_result r = simulated(&s, 2, 1, always, &ns);
  assert_true(r.valid);
  assert_int_equal(r.samples, 100);
  assert_int_equal(r.queries, 1);
  assert_true(near(r.seconds, 0.05) && near(r.rate, 2000) && near(r.max_ms, 50));
  s.min_duration_ns = 60 * MS; /* the samples do not last so long */
  r = simulated(&s, 2, 1, always, &ns);
  assert_false(r.valid || r.long_enough);
  s.qps = 2000; /* with the right rate they do */
  r = simulated(&s, 2, 1, always, &ns);
  assert_int_equal(r.samples, 132);
  assert_true(r.valid);
}

/* ---------------------------------------------------------------- server */

typedef struct queue {
  uint64_t late, done;
  double waited;
} queue;

/* One server, one line, worked out by Lindley's recursion. */
static queue lindley(const hone_load_settings *s, uint64_t ns) {
  hn_schedule d;
  queue q = {0};
  assert_int_equal(hn_schedule_open(s, &d, NULL), HONE_OK);
  while (hn_schedule_more(&d)) {
    const uint64_t due = hn_schedule_next(&d), at = due > q.done ? due : q.done;
    q.done = at + ns;
    q.late += q.done - due > s->bound_ns;
    q.waited += (double)(at - due);
  }
  hn_schedule_close(&d);
  return q;
}

static void test_server(void **state) {
  (void)state;
  uint64_t ns = MS;
  hone_load_settings s = settings(HONE_SCENARIO_SERVER, 2000, 100);
  for (s.qps = 100; s.qps < 2000; s.qps *= 1.7) {
    s.bound_ns = 4 * MS;
    const queue want = lindley(&s, ns);
    const hone_load_result r = simulated(&s, 1, 1, always, &ns);
    assert_int_equal(r.over, want.late);
    assert_true(near(r.wait_ms, want.waited / 1e6 / (double)r.queries) || want.waited == 0);
    assert_true(near(r.seconds, (double)want.done / 1e9));
    assert_true(near(r.busy, (double)r.queries * 1e-3 / r.seconds));
    assert_true(r.fast_enough == (r.percentile_ms <= 4));
    assert_true(r.sure == (r.queries >= r.over + hn_early_in_time(r.over, 0.99)));
    assert_true(r.valid == (r.sure && r.fast_enough));
    assert_true(r.long_enough && r.scheduled_rate > 0.8 * s.qps && r.scheduled_rate < 1.2 * s.qps);
  }
}

/* Bound, count and confidence, each alone. */
static void test_server_rules(void **state) {
  (void)state;
  uint64_t ns = MS;
  hone_load_settings s = settings(HONE_SCENARIO_SERVER, 1000, 100);
  s.qps = 600, s.bound_ns = 50 * MS;
  hone_load_result r = simulated(&s, 1, 1, always, &ns);
  assert_true(r.valid);
  s.bound_ns = MS / 2;
  r = simulated(&s, 1, 1, always, &ns);
  assert_false(r.valid || r.fast_enough);
  assert_non_null(strstr(r.why, "the 99th percentile is"));
  s.bound_ns = 50 * MS, s.min_duration_ns = 100 * MS;
  r = simulated(&s, 1, 1, always, &ns); /* too few for 99 % */
  assert_true(r.fast_enough && r.enough_queries && r.long_enough);
  assert_false(r.sure || r.valid);
  assert_int_equal(r.early_queries, 459);
}

/* Ends when it cannot be valid any more, not before. */
static void test_gives_up(void **state) {
  (void)state;
  uint64_t ns = 10 * MS;
  hone_load_settings s = settings(HONE_SCENARIO_SERVER, 10000, 100);
  s.qps = 200, s.bound_ns = 5 * MS, s.give_up = true;
  uint64_t all = 0;
  assert_int_equal(hn_schedule_count(&s, &all, NULL), HONE_OK);
  hone_load_result r = simulated(&s, 1, 1, always, &ns);
  assert_true(r.gave_up && !r.valid);
  assert_int_equal(r.over, hn_early_late(all, 0.99) + 1);
  assert_true(r.queries < all / 10);
  assert_non_null(strstr(r.why, "ended early"));
  ns = MS;
  s.qps = 100;
  const hone_load_result to_the_end = simulated(&s, 1, 1, always, &ns);
  assert_true(to_the_end.valid && !to_the_end.gave_up);
}

/* A run takes what waits, up to its rows. */
static uint64_t full(void *arg, uint64_t run, uint32_t worker, const hn_taken *taken) {
  (void)run, (void)worker;
  if (taken->n > *(uint32_t *)arg) *(uint32_t *)arg = taken->n;
  for (uint32_t i = 0; i < taken->n; i++) assert_true(taken->due[i] <= taken->at);
  return 4 * MS;
}

static void test_server_rows(void **state) {
  (void)state;
  uint32_t most = 0;
  hone_load_settings s = settings(HONE_SCENARIO_SERVER, 1000, 100);
  s.qps = 800, s.bound_ns = 20 * MS;
  const hone_load_result r = simulated(&s, 1, 8, full, &most);
  assert_in_range(most, 5, 8);
  assert_true(r.valid);
}

static void test_interrupted(void **state) {
  (void)state;
  for (hone_scenario k = HONE_SCENARIO_SINGLE; k <= HONE_SCENARIO_CLOSED; k++) {
    uint64_t ns = MS;
    hn_course c;
    hone_load_result r;
    hone_load_settings s = settings(k, 1000, 1000);
    s.qps = 500;
    assert_int_equal(hn_course_open(&s, 2, 1, &c, NULL), HONE_OK);
    simulate(&c, always, &ns, 50 * MS);
    hn_course_result(&c, &r);
    hn_course_close(&c);
    assert_true(r.interrupted && !r.valid);
    assert_true(strncmp(r.why, "it was ended early", 18) == 0);
    assert_in_range(r.samples, 10, 110);
  }
}

static void test_refused(void **state) {
  (void)state;
  const hone_load_settings good = settings(HONE_SCENARIO_SERVER, 10, 10);
  hone_load_settings s[] = {good, good, good, good, good, good, good, good};
  s[0].percentile = 1, s[1].qps = 0, s[2].qps = (double)NAN, s[3].samples = 0, s[4].min_queries = 0;
  s[5].bound_ns = 0, s[6].scenario = (hone_scenario)77, s[7].min_duration_ns = UINT64_MAX;
  for (size_t i = 0; i < sizeof s / sizeof *s; i++) {
    hn_course c;
    hone_error error = {0};
    assert_int_equal(hn_course_open(&s[i], 1, 1, &c, &error), HONE_ERROR_USAGE);
    assert_true(error.what[0]);
    hn_course_close(&c);
  }
  assert_int_equal(hn_course_check(&good, 1, 1, NULL), HONE_OK);
  assert_int_equal(hn_course_check(&good, 0, 1, NULL), HONE_ERROR_USAGE);
}

/* ---------------------------------------------------------------- the highest rate */

typedef struct machine {
  uint32_t in_flight;
  uint64_t ns;             /* of a run */
  uint64_t every, slow;    /* each so-many-th run takes so long; 0: none */
  uint32_t tests, stop_at; /* the test that is interrupted; 0: none */
} machine;

static uint64_t of_machine(void *arg, uint64_t run, uint32_t worker, const hn_taken *taken) {
  const machine *m = arg;
  (void)worker, (void)taken;
  return m->every && run % m->every == m->every - 1 ? m->slow : m->ns;
}

static hone_status on_machine(void *arg, const hone_load_settings *s, hone_load_result *out,
                              hone_error *error) {
  machine *m = arg;
  (void)error;
  *out = simulated(s, m->in_flight, 1, of_machine, m);
  if (++m->tests == m->stop_at) out->interrupted = true, out->valid = false;
  return HONE_OK;
}

static hone_load_peak peak_of(machine *m, uint64_t ms, uint64_t bound_ns, double from) {
  hone_load_settings s = settings(HONE_SCENARIO_SERVER, ms, 100);
  const hn_trials trials = {m, on_machine};
  hone_load_peak p;
  s.bound_ns = bound_ns, s.qps = from;
  assert_int_equal(hn_peak_search(&trials, &s, 0, &p, NULL), HONE_OK);
  return p;
}

static void test_peak(void **state) {
  (void)state;
  static const struct {
    machine machine;
    uint64_t bound;
    hone_load_limit limit;
    const char *says;
  } rows[] = {
      {{.in_flight = 1, .ns = MS}, 60 * MS, HONE_LIMIT_CAPACITY, "capacity"},
      {{.in_flight = 4, .ns = 8 * MS}, 10 * MS, HONE_LIMIT_BURSTS, "bursts"},
      {{.in_flight = 1, .ns = 10 * MS}, 5 * MS, HONE_LIMIT_RUNS, "a run alone takes 10.000 ms"},
      {{.in_flight = 2, .ns = MS, .every = 30, .slow = 50 * MS}, 20 * MS, HONE_LIMIT_TAIL, "slow runs"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (double from = 0; from < 3000; from = from * 50 + 10) { /* 0: it finds a beginning */
      machine m = rows[i].machine;
      hone_load_peak p = peak_of(&m, 1000, rows[i].bound, from);
      assert_int_equal(p.limit, rows[i].limit);
      assert_true(p.too_much >= 0 && !p.trial[p.too_much].valid && !p.interrupted);
      assert_true(strncmp(p.text, rows[i].says, strlen(rows[i].says)) == 0);
      assert_true((p.best < 0) == (i >= 2));
      if (p.best >= 0) {
        const double best = p.trial[p.best].settings.qps, more = p.trial[p.too_much].settings.qps;
        assert_true(p.trial[p.best].valid && more > best && more - best <= best / 32);
        assert_true(best < m.in_flight * 1e9 / (double)m.ns);
      }
      for (uint32_t k = 0; k < p.n; k++) /* none of the valid ones is higher */
        assert_true(!p.trial[k].valid || p.trial[k].settings.qps <= p.trial[p.best].settings.qps);
      hone_load_peak_free(&p);
    }
}

/* A machine that takes no time: the search ends. */
static void test_peak_none(void **state) {
  (void)state;
  machine m = {.in_flight = 1};
  hone_load_peak p = peak_of(&m, 1, MS, 1e5);
  assert_int_equal(p.limit, HONE_LIMIT_NONE);
  assert_true(p.best >= 0 && p.too_much < 0);
  hone_load_peak_free(&p);
}

/* An interrupted test says nothing about its rate. */
static void test_peak_interrupted(void **state) {
  (void)state;
  machine m = {.in_flight = 1, .ns = MS, .stop_at = 3};
  hone_load_peak p = peak_of(&m, 1000, 60 * MS, 100);
  assert_true(p.interrupted);
  assert_int_equal(p.n, 3);
  assert_int_equal(p.best, 1);
  assert_int_equal(p.too_much, -1);
  hone_load_peak_free(&p);
  m = (machine){.in_flight = 1, .ns = MS, .stop_at = 1};
  p = peak_of(&m, 1000, 60 * MS, 0); /* while it looks for a beginning */
  assert_true(p.interrupted && p.n == 0 && p.best == -1);
  hone_load_peak_free(&p);
}

static void test_knee(void **state) {
  (void)state;
  static const double rate[] = {100, 180, 240, 250, 251, 253};
  hone_load_result r[6] = {0};
  for (int i = 0; i < 6; i++) r[i].rate = rate[i];
  assert_int_equal(hone_load_knee(r, 6), 5); /* 5.4 % more than the third */
  r[5].rate = 251;
  assert_int_equal(hone_load_knee(r, 6), 2);
}

/* ---------------------------------------------------------------- threads */

typedef struct job {
  atomic_uint samples, runs, inside[8];
  atomic_bool cancelled, twice; /* two calls of a worker at a time */
  hone_status fail;             /* with the tenth run */
  bool endless;                 /* runs last until they are cancelled */
} job;

static hone_status job_run(void *arg, uint32_t worker, const hn_taken *taken, hone_error *error) {
  job *j = arg;
  if (atomic_fetch_add(&j->inside[worker], 1)) atomic_store(&j->twice, true);
  while (j->endless && !atomic_load(&j->cancelled)) hn_sleep_ms(1);
  atomic_fetch_add(&j->samples, taken->n);
  const unsigned run = atomic_fetch_add(&j->runs, 1) + 1;
  atomic_fetch_sub(&j->inside[worker], 1);
  if (j->endless) return hn_fail(error, HONE_ERROR_CANCELLED, "cancelled");
  if (j->fail != HONE_OK && run == 10) return hn_fail(error, j->fail, "the tenth");
  return HONE_OK;
}

static void job_cancel(void *arg) { atomic_store(&((job *)arg)->cancelled, true); }

static bool stop_at_once(void *arg, const char *what, uint32_t done, uint32_t total) {
  (void)what;
  assert_true(done < total);
  ++*(int *)arg;
  return false;
}

static hone_status work(hone_scenario scenario, uint32_t in_flight, uint32_t rows, job *j,
                        const hone_watch *watch, hone_load_result *r, hone_error *error) {
  hone_load_settings s = settings(scenario, 5, 100);
  hn_course c;
  s.qps = 20000;
  const hn_crew crew = {.arg = j, .run = job_run, .cancel = job_cancel, .watch = watch};
  hone_status status = hn_course_open(&s, in_flight, rows, &c, error);
  if (status == HONE_OK) status = hn_crew_run(&crew, &c, error);
  if (status == HONE_OK) hn_course_result(&c, r);
  hn_course_close(&c);
  return status;
}

static void test_crew(void **state) {
  (void)state;
  for (hone_scenario k = HONE_SCENARIO_SINGLE; k <= HONE_SCENARIO_CLOSED; k++)
    for (uint32_t in_flight = 1; in_flight <= 4; in_flight += 3)
      for (uint32_t rows = 1; rows <= 3; rows += 2) {
        job j = {0};
        hone_load_result r;
        hone_error error = {0};
        assert_int_equal(work(k, in_flight, rows, &j, NULL, &r, &error), HONE_OK);
        assert_int_equal(j.samples, r.samples);
        assert_false(j.twice);
        assert_true(k == HONE_SCENARIO_OFFLINE ? r.samples >= 100 : r.queries >= 100);
        assert_false(r.interrupted);
        if (k == HONE_SCENARIO_MULTI) assert_int_equal(r.samples, 8 * r.queries);
        if (rows == 1) assert_int_equal(j.runs, r.samples);
      }
}

static void test_crew_fails(void **state) {
  (void)state;
  for (hone_scenario k = HONE_SCENARIO_SINGLE; k <= HONE_SCENARIO_CLOSED; k++) {
    job j = {.fail = HONE_ERROR_INPUT};
    hone_load_result r;
    hone_error error = {0};
    assert_int_equal(work(k, 3, 1, &j, NULL, &r, &error), HONE_ERROR_INPUT);
    assert_string_equal(error.what, "the tenth");
    assert_true(j.runs >= 10);
  }
}

/* Stopped from outside, and by a run that somebody else cancelled. */
static void test_crew_stops(void **state) {
  (void)state;
  for (hone_scenario k = HONE_SCENARIO_SINGLE; k <= HONE_SCENARIO_CLOSED; k++) {
    int told = 0;
    const hone_watch watch = {.progress = stop_at_once, .arg = &told};
    job j = {.endless = true}, cancelled = {.fail = HONE_ERROR_CANCELLED};
    hone_load_result r;
    assert_int_equal(work(k, 3, 1, &j, &watch, &r, NULL), HONE_OK);
    assert_true(r.interrupted && !r.valid && r.samples == 0 && told > 0);
    assert_int_equal(work(k, 3, 1, &cancelled, NULL, &r, NULL), HONE_OK);
    assert_true(r.interrupted && !r.valid);
    assert_true(r.samples >= 9);
  }
}

static void test_no_memory(void **state) {
  (void)state;
  for (hone_scenario k = HONE_SCENARIO_SINGLE; k <= HONE_SCENARIO_CLOSED; k++) {
    hone_status status = HONE_ERROR_MEMORY;
    uint64_t n = 0;
    for (; status != HONE_OK && n < 100; n++) {
      job j = {0};
      hone_load_result r;
      hn_mem_fail_after(n + 1);
      status = work(k, 2, 1, &j, NULL, &r, NULL);
      hn_mem_fail_after(0);
      assert_true(status == HONE_OK || status == HONE_ERROR_MEMORY);
    }
    assert_in_range(n, 5, 99);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_single_ends),  cmocka_unit_test(test_single_percentiles),
      cmocka_unit_test(test_max_duration), cmocka_unit_test(test_multi),
      cmocka_unit_test(test_offline),      cmocka_unit_test(test_server),
      cmocka_unit_test(test_server_rules), cmocka_unit_test(test_gives_up),
      cmocka_unit_test(test_server_rows),  cmocka_unit_test(test_interrupted),
      cmocka_unit_test(test_refused),      cmocka_unit_test(test_peak),
      cmocka_unit_test(test_peak_none),    cmocka_unit_test(test_peak_interrupted),
      cmocka_unit_test(test_knee),         cmocka_unit_test(test_crew),
      cmocka_unit_test(test_crew_fails),   cmocka_unit_test(test_crew_stops),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
