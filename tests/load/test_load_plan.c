/* Load on a real plan: every scenario, batches, curves, the search; and what is refused. Nothing depends on
 * speed. */
#include <hone/hone.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 6, ROWS = 4 };

/* A small network of the zoo with inputs of 1 and of ROWS rows. */
typedef struct site {
  hone_model *model;
  hone_engine *engine;
  hone_plan *plan[2]; /* of batch 1 and ROWS */
  hone_data data[SAMPLES];
  const hone_tensor *in[SAMPLES];
} site;

static int open_site(void **state) {
  static site s;
  const hone_zoo_options small = {.size = 14, .width = 0.1}; /* thousands of runs, also under TSan */
  assert_int_equal(hone_zoo_build("res3_block", &small, &s.model, NULL), HONE_OK);
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 2, .tuning = "off"}, &s.engine, NULL),
                   HONE_OK);
  for (int i = 0; i < 2; i++) {
    const hone_plan_options p = {.level = 2, .batch = i ? ROWS : 1};
    assert_int_equal(hone_plan_create(s.engine, s.model, &p, &s.plan[i], NULL), HONE_OK);
  }
  for (uint64_t i = 0; i < SAMPLES; i++) {
    const hone_tensor_desc *d = hone_plan_input_desc(s.plan[0], 0);
    assert_int_equal(hone_data_for_input(s.model, 0, d, i + 1, &s.data[i], NULL), HONE_OK);
    s.in[i] = &s.data[i].tensor;
  }
  *state = &s;
  return 0;
}

static int close_site(void **state) {
  site *s = *state;
  for (int i = 0; i < SAMPLES; i++) hone_data_free(&s->data[i]);
  for (int i = 0; i < 2; i++) hone_plan_destroy(s->plan[i]);
  hone_engine_destroy(s->engine);
  hone_model_release(s->model);
  return 0;
}

static hone_load_settings settings(hone_scenario scenario) {
  hone_load_settings s;
  hone_load_defaults(scenario, &s);
  s.min_duration_ns = 0, s.min_queries = 70, s.samples = SAMPLES, s.qps = 2000;
  s.bound_ns = UINT64_C(3600000000000); /* an hour */
  s.percentile = 0.9;
  return s;
}

static void test_scenarios(void **state) {
  const site *s = *state;
  for (hone_scenario k = HONE_SCENARIO_SINGLE; k <= HONE_SCENARIO_CLOSED; k++)
    for (int batch = 0; batch < 2; batch++)
      for (uint32_t in_flight = 1; in_flight <= 3; in_flight += 2) {
        const hone_load_target t = {s->plan[batch], in_flight, batch ? ROWS : 1, s->in, 0};
        const hone_load_settings o = settings(k);
        hone_load_result r;
        hone_error error = {0};
        if (hone_load_run(&t, &o, NULL, &r, &error) != HONE_OK) fail_msg("%s", error.what);
        assert_true(r.valid || k == HONE_SCENARIO_CLOSED);
        assert_string_equal(r.why, "");
        assert_int_equal(r.in_flight, k == HONE_SCENARIO_SINGLE ? 1 : in_flight);
        assert_true(r.samples >= 70 && r.rate > 0 && r.busy > 0 && r.busy <= 1);
        assert_true(r.min_ms > 0 && r.min_ms <= r.p50_ms && r.p50_ms <= r.p99_ms && r.p99_ms <= r.max_ms);
        assert_true(isnan(r.early_ms) == (k > HONE_SCENARIO_MULTI));
      }
}

static void test_curve(void **state) {
  const site *s = *state;
  const hone_load_target t = {s->plan[0], 3, 1, s->in, 2};
  const hone_load_settings o = settings(HONE_SCENARIO_CLOSED);
  hone_load_result points[3];
  uint32_t n = 0;
  assert_int_equal(hone_load_curve(&t, &o, NULL, points, &n, NULL), HONE_OK);
  assert_int_equal(n, 3);
  for (uint32_t i = 0; i < n; i++) assert_true(points[i].in_flight == i + 1 && points[i].samples >= 70);
  assert_true(hone_load_knee(points, n) < n);
}

/* A bound that no run meets: the search ends at once and says so. */
static void test_peak(void **state) {
  const site *s = *state;
  const hone_load_target t = {s->plan[0], 1, 1, s->in, 0};
  hone_load_settings o = settings(HONE_SCENARIO_SERVER);
  hone_load_peak p;
  o.qps = 100, o.bound_ns = 1;
  assert_int_equal(hone_load_peak_find(&t, &o, 0, NULL, &p, NULL), HONE_OK);
  assert_true(p.n == 1 && p.best == -1 && p.too_much == 0);
  assert_int_equal(p.limit, HONE_LIMIT_RUNS);
  assert_true(p.trial[0].gave_up && !p.trial[0].valid);
  hone_load_peak_free(&p);
}

/* ---------------------------------------------------------------- stopping */

typedef struct stopper {
  bool run; /* contexts may be made and warmed up */
  hone_context *context;
} stopper;

static bool progress(void *arg, const char *what, uint32_t done, uint32_t total) {
  (void)arg, (void)what, (void)done, (void)total;
  return false;
}

static bool running(void *arg, hone_context *context) {
  stopper *s = arg;
  s->context = context;
  return s->run;
}

static void test_stopped(void **state) {
  const site *s = *state;
  const hone_load_target t = {s->plan[0], 2, 1, s->in, 0};
  for (int run = 0; run < 2; run++) {
    stopper stop = {.run = run};
    const hone_watch watch = {progress, running, &stop};
    hone_load_settings o = settings(HONE_SCENARIO_SERVER);
    hone_load_result r, points[2];
    hone_load_peak p;
    uint32_t n = 9;
    o.min_duration_ns = UINT64_C(3600000000000); /* nothing but the watch ends it */
    assert_int_equal(hone_load_run(&t, &o, &watch, &r, NULL), HONE_OK);
    assert_true(r.interrupted && !r.valid && !r.long_enough);
    assert_null(stop.context); /* none runs any more */
    assert_int_equal(hone_load_peak_find(&t, &o, 0, &watch, &p, NULL), HONE_OK);
    assert_true(p.interrupted && p.best == -1);
    hone_load_peak_free(&p);
    assert_int_equal(hone_load_curve(&t, &o, &watch, points, &n, NULL), HONE_OK);
    assert_int_equal(n, 0);
  }
}

/* ---------------------------------------------------------------- refusals */

static void refused(const hone_load_target *t, const hone_load_settings *o, const char *says) {
  hone_load_result r;
  hone_error error = {0};
  assert_int_equal(hone_load_run(t, o, NULL, &r, &error), HONE_ERROR_USAGE);
  if (!strstr(error.what, says)) fail_msg("'%s' does not say '%s'", error.what, says);
}

static void test_refused(void **state) {
  const site *s = *state;
  const hone_load_settings good = settings(HONE_SCENARIO_SERVER);
  const hone_load_target target = {s->plan[0], 1, 1, s->in, 0};
  const hone_tensor *missing[SAMPLES] = {s->in[0]};
  hone_load_target t = target;
  hone_load_settings o = good;
  t.rows = 2;
  refused(&t, &good, "is not 2 rows");
  t = target, t.plan = s->plan[1];
  refused(&t, &good, "sample 0 does not fit input 'x'");
  t = target, t.in = missing;
  refused(&t, &good, "sample 1 has no input 0");
  t = target, t.in_flight = 0;
  refused(&t, &good, "wants a plan, samples, contexts");
  t = target, t.in_flight = 5000;
  refused(&t, &good, "1 to 1024 contexts");
  o.percentile = 2;
  refused(&target, &o, "the percentile must be");
  hone_load_peak p;
  assert_int_equal(hone_load_peak_find(&target, &o, 0, NULL, &p, NULL), HONE_ERROR_USAGE);
  o = settings(HONE_SCENARIO_SINGLE);
  assert_int_equal(hone_load_peak_find(&target, &o, 0, NULL, &p, NULL), HONE_ERROR_USAGE);
  hone_load_peak_free(&p);
  hone_load_peak_free(NULL);
  assert_null(hone_scenario_name((hone_scenario)9));
  assert_string_equal(hone_scenario_name(HONE_SCENARIO_OFFLINE), "offline");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scenarios), cmocka_unit_test(test_curve),   cmocka_unit_test(test_peak),
      cmocka_unit_test(test_stopped),   cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, open_site, close_site);
}
