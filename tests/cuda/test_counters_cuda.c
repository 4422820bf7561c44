/* Hardware counters of hone's own profile of a GPU, from the (fake) range profiler to the bounds of the
 * layers and to the report: all steps, chosen ones, what the chip lacks, and where the driver refuses. */
#include "net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hone/insight.h>

#define COMPUTE "sm__throughput.avg.pct_of_peak_sustained_elapsed="
#define MEMORY "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed="

enum { STEPS = 5 };

/* Five steps of which none swallows another: products between softmaxes. */
static net_session open_net(void) {
  hn_model *m = net_begin();
  hn_value *v = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){8, 16});
  for (int i = 0; i < 3; i++) {
    if (i) v = net_op(m, "Softmax", &v, 1);
    v = net_op(m, "MatMul", (hn_value *[]){v, net_weights(m, 2, (const int64_t[]){16, 16}, 3)}, 2);
  }
  net_finish(m, v);
  net_session s = {.model = m};
  hone_error e = {0};
  if (hone_engine_create(&(hone_engine_options){.device = "cuda"}, &s.engine, &e) != HONE_OK ||
      hone_plan_create(s.engine, m, &(hone_plan_options){.level = 2}, &s.plan, &e) != HONE_OK ||
      hone_context_create(s.plan, &s.context, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  assert_int_equal(hone_plan_steps(s.plan), STEPS);
  return s;
}

/* Records two runs and adds the counters of these steps (NULL: of all). */
static hone_facts *record(net_session *s, const uint32_t *steps, uint32_t n, hone_status *counted,
                          hone_error *e) {
  static float x[8 * 16];
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){8, 16}), x};
  const hone_tensor *inputs[] = {&in};
  hone_facts *f = hone_facts_create();
  assert_int_equal(hone_context_record(s->context, f, 2, e), HONE_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(hone_context_run(s->context, inputs, NULL, e), HONE_OK);
  if (hone_context_record_end(s->context, e) != HONE_OK) fail_msg("%s", e->what);
  *counted = hone_context_counters(s->context, steps, n, f, e);
  return f;
}

static hone_profile *profile(hone_facts *f) {
  hone_profile *p = NULL;
  hone_error e = {0};
  if (hone_profile_create(f, NULL, &p, &e) != HONE_OK) fail_msg("%s", e.what);
  return p;
}

static const hone_layer *of_step(const hone_profile *p, int32_t step) {
  for (size_t i = 0; i < p->layer_count; i++)
    if (p->layers[i].step == step) return &p->layers[i];
  fail_msg("step %d has no layer", step);
  return NULL;
}

static double counter(const hone_layer *l, const char *name) {
  for (size_t i = 0; i < l->counter_count; i++)
    if (strcmp(l->counters[i].name, name) == 0) return l->counters[i].value;
  return (double)NAN;
}

static bool is_unmeasured(const hone_facts *f, const char *what) {
  size_t n;
  const hone_note *note = hone_facts_unmeasured(f, &n);
  for (size_t i = 0; i < n; i++)
    if (strcmp(note[i].what, what) == 0) return true;
  return false;
}

static hone_status keep(void *user, const char *data, size_t length, hone_error *error) {
  (void)error;
  *(char **)user = strndup(data, length);
  return HONE_OK;
}

static void bounds_by_counters(void **state) {
  (void)state;
  /* compute-bound, memory-bound, latency-bound, both above 60 with the larger first, between */
  setenv("HONE_FAKE_METRICS",
         COMPUTE "85,20,12,90,50;" MEMORY "30,75,8,70,45;lts__t_sector_hit_rate.pct=10,20,30,40,50;"
                 "sm__inst_executed.avg.per_cycle_elapsed=2.5;l1tex__t_sector_hit_rate.pct=nan",
         1);
  net_session s = open_net();
  hone_error e = {0};
  hone_status counted;
  hone_facts *f = record(&s, NULL, 0, &counted, &e);
  if (counted != HONE_OK) fail_msg("%s", e.what);
  hone_profile *p = profile(f);
  static const hone_limit bound[STEPS] = {HONE_LIMIT_COMPUTE, HONE_LIMIT_MEMORY, HONE_LIMIT_LATENCY,
                                          HONE_LIMIT_COMPUTE, HONE_LIMIT_COMPUTE};
  static const double compute[STEPS] = {85, 20, 12, 90, 50};
  for (int32_t i = 0; i < STEPS; i++) {
    const hone_layer *l = of_step(p, i);
    assert_true(l->by_counters);
    assert_int_equal(l->bound, bound[i]);
    assert_true(l->compute_pct == compute[i]);
    assert_true((l->bound_confidence >= 0.5) == (i < 4));
    assert_true(counter(l, "l2_hit_pct") == 10 * (i + 1));
    assert_true(counter(l, "instructions_per_cycle") == 2.5);
    assert_true(isnan(counter(l, "l1_hit_pct"))); /* a division of nothing by nothing is no figure */
    assert_true(isnan(counter(l, "dram_pct_of_peak")));
  }
  assert_true(is_unmeasured(f, "dram_pct_of_peak") && is_unmeasured(f, "l1_hit_pct"));
  assert_false(is_unmeasured(f, "l2_hit_pct"));
  static const hone_report_format formats[] = {HONE_REPORT_JSON, HONE_REPORT_CSV, HONE_REPORT_TEXT,
                                               HONE_REPORT_HTML};
  static const char *const says[][2] = {
      {"\"bound_source\":\"counters\"", "\"compute_pct_of_peak\":85,\"memory_pct_of_peak\":30"},
      {",counters,", ",85.0000,30.0000,"},
      {"Hardware counters (5)", "compute %"},
      {"\"bound_source\":\"counters\"", "\"compute_pct_of_peak\":85,\"memory_pct_of_peak\":30"}};
  for (int i = 0; i < 4; i++) {
    char *text = NULL;
    assert_int_equal(
        hone_report_write(&(hone_report_input){.baseline = p, .width = 200}, formats[i], keep, &text, &e),
        HONE_OK);
    for (int k = 0; k < 2; k++)
      if (!strstr(text, says[i][k])) fail_msg("no '%s' in\n%s", says[i][k], text);
    free(text);
  }
  hone_profile_destroy(p);
  hone_facts_destroy(f);
  net_close(&s);
}

/* The narrow pass: the chosen steps alone are done again and have counters. */
static void chosen_steps_alone(void **state) {
  (void)state;
  setenv("HONE_FAKE_METRICS", COMPUTE "70,11;" MEMORY "20,90", 1);
  net_session s = open_net();
  hone_error e = {0};
  hone_status counted;
  hone_facts *f = record(&s, (const uint32_t[]){1, 3, 77}, 3, &counted, &e);
  if (counted != HONE_OK) fail_msg("%s", e.what);
  hone_profile *p = profile(f);
  for (int32_t i = 0; i < STEPS; i++) {
    const hone_layer *l = of_step(p, i);
    assert_int_equal(l->by_counters, i == 1 || i == 3);
    assert_true(isnan(counter(l, "compute_pct_of_peak")) == (i != 1 && i != 3));
  }
  assert_int_equal(of_step(p, 1)->bound, HONE_LIMIT_COMPUTE);
  assert_int_equal(of_step(p, 3)->bound, HONE_LIMIT_MEMORY);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
  net_close(&s);
}

/* Steps that are none of the device's have a note in place of counters. */
static void nothing_to_count(void **state) {
  (void)state;
  setenv("HONE_FAKE_METRICS", COMPUTE "70;" MEMORY "20", 1);
  net_session s = open_net();
  hone_error e = {0};
  hone_status counted;
  hone_facts *f = record(&s, (const uint32_t[]){77}, 1, &counted, &e);
  assert_int_equal(counted, HONE_OK);
  assert_true(is_unmeasured(f, "hardware counters") && !is_unmeasured(f, "compute_pct_of_peak"));
  assert_true(hone_engine_device_peak(s.engine) > 0);
  assert_int_equal(hone_engine_device_peak(NULL), 0);
  hone_counting *none = NULL;
  assert_int_equal(hone_context_count(s.context, none, NULL, 0, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_count_end(s.context, f, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_count(NULL, none, NULL, 0, NULL), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_count_end(NULL, NULL, NULL), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_counters(NULL, NULL, 0, f, &e), HONE_ERROR_USAGE);
  hone_facts_destroy(f);
  net_close(&s);
}

static void refused_counters_say_why(void **state) {
  (void)state;
  setenv("HONE_FAKE_METRICS", "refuse", 1);
  net_session s = open_net();
  hone_error e = {0};
  hone_status counted;
  hone_facts *f = record(&s, NULL, 0, &counted, &e);
  assert_int_equal(counted, HONE_ERROR_MISSING);
  assert_non_null(strstr(e.what, "INSUFFICIENT_PRIVILEGES"));
  assert_non_null(strstr(e.hint, "NVreg_RestrictProfilingToAdminUsers"));
  hone_facts_destroy(f);
  net_close(&s);
}

int main(void) {
  setenv("HONE_TRACE", "events", 1); /* what ran when is test_trace's matter */
  const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_by_counters),
                                     cmocka_unit_test(chosen_steps_alone), cmocka_unit_test(nothing_to_count),
                                     cmocka_unit_test(refused_counters_say_why)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
