/* Layers of which only totals are known: their rows, their shares, and what the closure says of them. */
#include <hone/insight.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static hone_facts *two_layers(void) {
  hone_facts *f = hone_facts_create();
  assert_non_null(f);
  hone_facts_add_step(f,
                      &(hone_step_fact){.name = "a", .op_type = "Conv", .flops = 6000000, .anchor_node = -1});
  hone_facts_add_step(
      f, &(hone_step_fact){.name = "b", .op_type = "Reformat", .is_reformat = true, .anchor_node = -1});
  hone_facts_add_step_stats(
      f, &(hone_step_stats){.step = 0, .count = 10, .runs = 10, .total_ms = 30, .median_ms = 2});
  hone_facts_add_step_stats(f, &(hone_step_stats){.step = 1, .count = 20, .runs = 10, .total_ms = 10});
  return f;
}

static hone_profile *profile_of(hone_facts *f) {
  hone_error error = {0};
  hone_profile *p = NULL;
  if (hone_profile_create(f, NULL, &p, &error) != HONE_OK) fail_msg("%s", error.what);
  assert_null(p->doubt);
  assert_int_equal(p->layer_count, 2);
  assert_true(p->closure.imbalance_ms < 1e-9);
  return p;
}

static bool near(double a, double b) { return fabs(a - b) < 1e-9 * (fabs(b) + 1); }

static void finish(hone_facts *f, hone_profile *p) {
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void test_alone(void **unused) {
  (void)unused;
  hone_facts *f = two_layers();
  hone_profile *p = profile_of(f);
  const hone_layer *a = &p->layers[0], *b = &p->layers[1];
  assert_true(near(a->time_ms, 3) && near(a->calls, 1) && near(a->stats.p50, 2) && near(a->pct, 75));
  assert_true(near(b->time_ms, 1) && near(b->calls, 2) && near(b->pct, 25));
  assert_true(a->kind == HONE_SPAN_KERNEL && b->kind == HONE_SPAN_REFORMAT);
  /* What nobody measured is not invented: a median of one execution is none of a run with two. */
  assert_true(isnan(a->stats.p95) && isnan(a->stats.cv) && isnan(b->stats.p50) && isnan(b->stats.min));
  assert_true(near(a->gflops, 3)); /* by the median */
  assert_true(near(p->wall.p50, 4) && near(p->closure.layers_ms, 3) && near(p->closure.reformats_ms, 1));
  assert_false(p->closure.has_outer_clock);
  assert_non_null(p->note);
  finish(f, p);
}

static void test_longer_than_the_run(void **unused) {
  (void)unused;
  hone_facts *f = two_layers();
  hone_facts_add_wall(f, 0, 2000000);
  hone_profile *p = profile_of(f);
  assert_true(near(p->layers[0].time_ms, 3)); /* as it was measured */
  assert_true(near(p->layers[0].pct + p->layers[1].pct, 100));
  assert_true(near(p->closure.wall_ms, 2) && near(p->closure.layers_ms, 1.5) &&
              near(p->closure.residual_ms, 0));
  assert_non_null(strstr(p->note, "4.000"));
  finish(f, p);
}

static void test_shorter_than_the_run(void **unused) {
  (void)unused;
  hone_facts *f = two_layers();
  hone_facts_add_wall(f, 0, 4000000);
  hone_facts_add_wall(f, 1, 6000000);
  hone_profile *p = profile_of(f);
  assert_true(near(p->closure.wall_ms, 5) && near(p->closure.residual_ms, 1) && near(p->wall.max, 6));
  assert_true(near(p->layers[0].pct, 60) && near(p->layers[1].pct, 20));
  finish(f, p);
}

/* Stamped runs with a copy and the computation as a whole: the layers divide the computation. */
static void test_beside_runs(void **unused) {
  (void)unused;
  hone_facts *f = two_layers();
  for (int i = 0; i < 3; i++) {
    const int64_t t = i * 10000000;
    hone_facts_add_span(
        f, &(hone_span){
               .kind = HONE_SPAN_RUN, .start_ns = t, .end_ns = t + 5000000, .iteration = i, .step = -1});
    hone_facts_add_span(f, &(hone_span){.kind = HONE_SPAN_COPY_H2D,
                                        .start_ns = t,
                                        .end_ns = t + 3000000,
                                        .iteration = i,
                                        .step = -1,
                                        .name = "in"});
    hone_facts_add_span(f, &(hone_span){.kind = HONE_SPAN_KERNEL,
                                        .start_ns = t + 3000000,
                                        .end_ns = t + 5000000,
                                        .iteration = i,
                                        .step = -1,
                                        .name = "all"});
  }
  hone_error error = {0};
  hone_profile *p = NULL;
  assert_int_equal(hone_profile_create(f, NULL, &p, &error), HONE_OK);
  assert_null(p->doubt);
  assert_int_equal(p->layer_count, 3); /* the copy and the two layers; the whole is no layer */
  assert_int_equal(p->iterations, 3);
  double shares = 0;
  for (size_t i = 0; i < p->layer_count; i++) {
    shares += p->layers[i].pct;
    assert_string_not_equal(p->layers[i].name, "all");
    if (strcmp(p->layers[i].name, "a") == 0) assert_true(near(p->layers[i].pct, 30));
  }
  assert_true(near(shares, 100));
  assert_true(near(p->closure.layers_ms, 2) && near(p->closure.copies_ms, 3) && near(p->stages.h2d_ms, 3));
  finish(f, p);
}

/* The time to launch a step says nothing about the speed of its work. */
static void test_launches(void **unused) {
  (void)unused;
  hone_facts *f = hone_facts_create();
  hone_facts_add_step(f, &(hone_step_fact){.name = "a",
                                           .op_type = "Conv",
                                           .flops = 1000000000,
                                           .bytes = 100,
                                           .is_launch = true,
                                           .anchor_node = -1});
  hone_facts_add_roof(f, &(hone_roof){.name = "f32", .threads = 1, .gflops = 10});
  hone_facts_add_span(f, &(hone_span){.kind = HONE_SPAN_HOST, .end_ns = 1000, .step = 0});
  hone_error error = {0};
  hone_profile *p = NULL;
  assert_int_equal(hone_profile_create(f, NULL, &p, &error), HONE_OK);
  assert_null(p->doubt); /* 10^6 GFLOP/s would be faster than the machine */
  assert_true(p->layers[0].gflops == 0 && p->layers[0].bound == HONE_LIMIT_UNKNOWN);
  finish(f, p);
}

static void test_refused(void **unused) {
  (void)unused;
  static const hone_step_stats wrong[] = {{.step = 2, .total_ms = 1},
                                          {.step = -1, .total_ms = 1},
                                          {.step = 0, .total_ms = -1},
                                          {.step = 0, .total_ms = NAN},
                                          {.step = 0, .total_ms = 1, .median_ms = -3}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    hone_facts *f = two_layers();
    hone_error error = {0};
    hone_facts_add_step_stats(f, &wrong[i]);
    assert_int_equal(hone_facts_check(f, &error), HONE_ERROR_INPUT);
    assert_string_equal(error.where, "facts: step_stats[2]");
    hone_facts_destroy(f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone),
                                     cmocka_unit_test(test_longer_than_the_run),
                                     cmocka_unit_test(test_shorter_than_the_run),
                                     cmocka_unit_test(test_beside_runs),
                                     cmocka_unit_test(test_launches),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
