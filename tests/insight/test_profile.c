/* The sweep, the closure and the statistics against answers worked out by hand, and against a slow second
 * opinion. */
#include "insight/profile/sweep.h"

#include <hone/insight.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void near(double a, double b) {
  if (fabs(a - b) > 1e-6 * (1 + fabs(b))) fail_msg("%.12g is not %.12g", a, b);
}

typedef struct interval {
  int64_t start, end;
  hone_span_kind kind;
  int32_t lane;
} interval;

static hn_sweep sweep(const interval *in, size_t n, int64_t low, int64_t high, double *exclusive) {
  hone_span spans[64];
  const hone_span *pointers[64];
  for (size_t i = 0; i < n; i++) {
    spans[i] =
        (hone_span){.start_ns = in[i].start, .end_ns = in[i].end, .kind = in[i].kind, .lane = in[i].lane};
    pointers[i] = &spans[i];
  }
  hn_sweep result;
  hone_error error = {0};
  assert_int_equal(hn_sweep_run(pointers, n, low, high, exclusive, &result, &error), HONE_OK);
  result.after_longest_gap = NULL;
  return result;
}

#define K HONE_SPAN_KERNEL
#define H2D HONE_SPAN_COPY_H2D
#define SYNC HONE_SPAN_SYNC

static void one_after_the_other(void **state) {
  (void)state;
  double x[2];
  hn_sweep r = sweep((interval[]){{10, 20, K, 0}, {25, 40, K, 0}}, 2, 0, 50, x);
  near(x[0], 10);
  near(x[1], 15);
  near(r.gaps, 25);
  near(r.longest_gap, 10);
}

static void nested_time_is_the_inner_ones(void **state) {
  (void)state;
  double x[3];
  hn_sweep r = sweep((interval[]){{0, 100, K, 0}, {20, 50, K, 0}, {30, 40, K, 0}}, 3, 0, 100, x);
  near(x[0], 70);
  near(x[1], 20);
  near(x[2], 10);
  near(r.gaps, 0);
}

static void computation_hides_copies(void **state) {
  (void)state;
  double x[3];
  hn_sweep r = sweep((interval[]){{0, 60, K, 0}, {40, 90, H2D, 1}, {0, 100, SYNC, 2}}, 3, 0, 100, x);
  near(x[0], 60);
  near(x[1], 30);
  near(x[2], 10);
  near(r.covered, 100);
}

static void equals_share(void **state) {
  (void)state;
  double x[2];
  sweep((interval[]){{0, 60, K, 0}, {30, 90, K, 1}}, 2, 0, 90, x);
  near(x[0], 45);
  near(x[1], 45);
}

static void empty_and_outside(void **state) {
  (void)state;
  double x[3];
  hn_sweep r = sweep((interval[]){{10, 10, K, 0}, {200, 300, K, 0}, {-50, 5, K, 0}}, 3, 0, 100, x);
  near(x[0], 0);
  near(x[1], 0);
  near(x[2], 5);
  near(r.gaps, 95);
}

/* The same rules, instant by instant. */
static void second_opinion(const interval *in, size_t n, int64_t high, double *x, double *gaps) {
  static const int rank[HONE_SPAN_KIND_COUNT] = {
      [HONE_SPAN_KERNEL] = 7,   [HONE_SPAN_REFORMAT] = 6, [HONE_SPAN_COPY] = 5, [HONE_SPAN_COPY_H2D] = 5,
      [HONE_SPAN_COPY_D2H] = 5, [HONE_SPAN_PRE] = 4,      [HONE_SPAN_POST] = 4, [HONE_SPAN_HOST] = 3,
      [HONE_SPAN_SYNC] = 2,     [HONE_SPAN_IDLE] = 1};
  memset(x, 0, n * sizeof *x);
  *gaps = 0;
  for (int64_t t = 0; t < high; t++) {
    size_t top[8];
    bool busy[8] = {false};
    for (size_t i = 0; i < n; i++) {
      if (in[i].kind == HONE_SPAN_RUN || t < in[i].start || t >= in[i].end) continue;
      const interval *was = busy[in[i].lane] ? &in[top[in[i].lane]] : NULL;
      bool inner = !was || in[i].start > was->start || (in[i].start == was->start && in[i].end <= was->end);
      if (inner) top[in[i].lane] = i;
      busy[in[i].lane] = true;
    }
    int best = 0, owners = 0;
    for (int lane = 0; lane < 8; lane++)
      if (busy[lane] && rank[in[top[lane]].kind] > best) best = rank[in[top[lane]].kind];
    for (int lane = 0; lane < 8; lane++) owners += busy[lane] && rank[in[top[lane]].kind] == best;
    for (int lane = 0; lane < 8; lane++)
      if (busy[lane] && rank[in[top[lane]].kind] == best) x[top[lane]] += 1.0 / owners;
    if (!owners) *gaps += 1;
  }
}

static void random_against_second_opinion(void **state) {
  (void)state;
  srand(11);
  for (int round = 0; round < 400; round++) {
    interval in[24];
    double fast[24], slow[24], gaps;
    size_t n = (size_t)(rand() % 24) + 1;
    for (size_t i = 0; i < n; i++) {
      in[i].start = rand() % 180;
      in[i].end = in[i].start + rand() % 60;
      in[i].kind = (hone_span_kind)(rand() % HONE_SPAN_KIND_COUNT);
      in[i].lane = rand() % 4;
    }
    hn_sweep r = sweep(in, n, 0, 200, fast);
    second_opinion(in, n, 200, slow, &gaps);
    for (size_t i = 0; i < n; i++) near(fast[i], slow[i]);
    near(r.gaps, gaps);
    near(r.covered + r.gaps, 200);
  }
}

static void statistics(void **state) {
  (void)state;
  hone_sample_stats s;
  double v[] = {5, 1, 4, 2, 3};
  assert_true(hone_stats_compute(v, 5, &s));
  near(s.mean, 3);
  near(s.p50, 3);
  near(s.p95, 4.8);
  near(s.min, 1);
  near(s.max, 5);
  near(s.stddev, sqrt(2.5));
  near(s.cv, sqrt(2.5) / 3);
  assert_true(v[0] == 5); /* the caller's order is kept */
  assert_true(hone_stats_compute(v, 1, &s));
  near(s.p95, 5);
  near(s.cv, 0);
  assert_true(hone_stats_compute(NULL, 0, &s));
  near(s.mean, 0);
}

/* ---- closure ---- */

static void span(hone_facts *f, hone_span_kind kind, const char *name, double from, double to) {
  hone_span s = {.kind = kind,
                 .name = name,
                 .start_ns = (int64_t)(from * 1e6),
                 .end_ns = (int64_t)(to * 1e6),
                 .step = -1};
  hone_facts_add_span(f, &s);
}

static hone_profile *profile(hone_facts *f) {
  hone_profile *p = NULL;
  hone_error error = {0};
  assert_int_equal(hone_profile_create(f, NULL, &p, &error), HONE_OK);
  near(p->closure.imbalance_ms, 0);
  return p;
}

/* A sleep between steps is a gap; a sleep that no span sees is residual; neither is spread over the layers.
 */
static void gap_and_residual(void **state) {
  (void)state;
  hone_facts *f = hone_facts_create();
  span(f, HONE_SPAN_RUN, NULL, 1, 11);
  span(f, HONE_SPAN_KERNEL, "a", 1, 3);
  span(f, HONE_SPAN_KERNEL, "b", 6, 10);
  hone_facts_add_wall(f, 0, 15000000);
  hone_profile *p = profile(f);
  near(p->closure.wall_ms, 15);
  near(p->closure.layers_ms, 6);
  near(p->closure.gaps_ms, 4);
  near(p->closure.residual_ms, 5);
  near(p->closure.residual_pct, 100.0 / 3);
  near(p->closure.longest_gap_ms, 3);
  assert_string_equal(p->closure.longest_gap_before, "b");
  assert_true(p->closure.has_outer_clock);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

/* An outer clock that says less than the spans is reported as such, not hidden. */
static void negative_residual(void **state) {
  (void)state;
  hone_facts *f = hone_facts_create();
  span(f, HONE_SPAN_KERNEL, "a", 0, 10);
  hone_facts_add_wall(f, 0, 9000000);
  hone_profile *p = profile(f);
  near(p->closure.residual_ms, -1);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void without_outer_clock(void **state) {
  (void)state;
  hone_facts *f = hone_facts_create();
  span(f, HONE_SPAN_KERNEL, "a", 0, 10);
  hone_profile *p = profile(f);
  assert_false(p->closure.has_outer_clock);
  near(p->closure.wall_ms, 10);
  near(p->closure.residual_ms, 0);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void stages_and_ceiling(void **state) {
  (void)state;
  hone_facts *f = hone_facts_create();
  span(f, HONE_SPAN_PRE, "decode", 0, 4);
  span(f, HONE_SPAN_RUN, NULL, 4, 14);
  span(f, HONE_SPAN_COPY_H2D, "in", 4, 5);
  span(f, HONE_SPAN_KERNEL, "a", 5, 12);
  span(f, HONE_SPAN_COPY_D2H, "out", 12, 13);
  span(f, HONE_SPAN_POST, "nms", 14, 19);
  hone_facts_add_wall(f, 0, 10000000);
  hone_profile *p = profile(f);
  near(p->stages.pre_ms, 4);
  near(p->stages.h2d_ms, 1);
  near(p->stages.infer_ms, 7);
  near(p->stages.d2h_ms, 1);
  near(p->stages.post_ms, 5);
  near(p->stages.idle_ms, 1);
  near(p->stages.total_ms, 19);
  near(p->throughput.serial_fps, 1000 / 19.0);
  near(p->throughput.overlapped_fps, 1000 / 7.0);
  assert_string_equal(p->throughput.slowest_stage, "infer");
  near(p->closure.copies_ms, 2);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void no_iteration_is_an_error(void **state) {
  (void)state;
  hone_facts *f = hone_facts_create();
  hone_profile *p = NULL;
  hone_error error = {0};
  assert_int_equal(hone_profile_create(f, NULL, &p, &error), HONE_ERROR_INPUT);
  assert_null(p);
  hone_facts_destroy(f);
}

/* ---- layers and bounds ---- */

static hone_facts *one_layer(double gflop, double mb, double ms) {
  hone_facts *f = hone_facts_create();
  hone_facts_add_roof(f, &(hone_roof){"f32", 1, 100, 0, 0});
  hone_facts_add_roof(f, &(hone_roof){"L3", 1, 0, 50, 16000000});
  hone_facts_add_roof(f, &(hone_roof){"DRAM", 1, 0, 20, 0});
  int32_t node = hone_facts_add_node(f, &(hone_node_fact){.name = "n", .op_type = "Conv"});
  hone_facts_add_step(f, &(hone_step_fact){.name = "s",
                                           .op_type = "Conv",
                                           .flops = (uint64_t)(gflop * 1e9),
                                           .bytes = (uint64_t)(mb * 1e6),
                                           .nodes = &node,
                                           .node_count = 1});
  for (int i = 0; i < 4; i++)
    hone_facts_add_span(f, &(hone_span){.kind = HONE_SPAN_KERNEL,
                                        .iteration = i,
                                        .start_ns = i * 1000000000ll,
                                        .end_ns = i * 1000000000ll + (int64_t)(ms * 1e6)});
  return f;
}

static void bound_is(double gflop, double mb, double ms, hone_limit bound, const char *level,
                     double roof_pct) {
  hone_facts *f = one_layer(gflop, mb, ms);
  hone_profile *p = profile(f);
  const hone_layer *l = &p->layers[0];
  assert_int_equal(l->bound, bound);
  if (level) assert_string_equal(l->memory_level, level);
  near(l->roof_pct, roof_pct);
  near(l->time_ms, ms);
  near(l->calls, 1);
  assert_string_equal(l->onnx_nodes[0], "n");
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void bounds(void **state) {
  (void)state;
  bound_is(0.8, 10, 10, HONE_LIMIT_COMPUTE, "L3", 80);
  bound_is(0.01, 160, 10, HONE_LIMIT_MEMORY, "DRAM", 80);
  bound_is(0.01, 8, 0.2, HONE_LIMIT_MEMORY, "L3", 80); /* fits into the cache: its roof counts */
  bound_is(0.01, 1, 10, HONE_LIMIT_LATENCY, "L3", 1);
  bound_is(0.5, 10, 10, HONE_LIMIT_COMPUTE, "L3", 50); /* in between: the larger names it */
}

/* Roofs and bounds count what is executed, speeds what the formula says. */
static void executed_work_meets_the_roof(void **state) {
  (void)state;
  static const struct {
    double executed;
    const char *arithmetic, *dtype;
    double roof_pct, intensity;
    hone_limit bound;
    bool doubt;
    double vectors; /* roof of bytes without tiles; 0: not known */
  } c[] = {
      {0, NULL, "f32", 400, 8, HONE_LIMIT_COMPUTE, true, 0},            /* as the formula: impossible */
      {0, "int8 vectors", "u8", 50, 8, HONE_LIMIT_COMPUTE, false, 800}, /* not the roof of tiles */
      {0, "int8 vectors", "u8", 25, 8, HONE_LIMIT_LATENCY, false, 0}, /* there are no tiles (memory: 25 %) */
      {0, NULL, "u8", 25, 8, HONE_LIMIT_LATENCY, false, 800},
      {0.25, NULL, "f32", 100, 2, HONE_LIMIT_COMPUTE, false, 0}, /* Winograd */
      {0.1, NULL, "f32", 40, 0.8, HONE_LIMIT_COMPUTE, false, 0},
      {3, "bf16", "f32", 60, 24, HONE_LIMIT_LATENCY, false, 0},    /* three products on wider units */
      {0, "unknown", "f32", 25, 8, HONE_LIMIT_UNKNOWN, false, 0}}; /* a library's secret: memory alone */
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    hone_facts *f = hone_facts_create();
    hone_facts_add_roof(f, &(hone_roof){"f32", 1, 100, 0, 0});
    hone_facts_add_roof(f, &(hone_roof){"bf16", 1, 2000, 0, 0});
    hone_facts_add_roof(f, &(hone_roof){"int8", 1, 4000, 0, 0});
    if (c[i].vectors > 0) hone_facts_add_roof(f, &(hone_roof){"int8 vectors", 1, c[i].vectors, 0, 0});
    hone_facts_add_roof(f, &(hone_roof){"DRAM", 1, 0, 200, 0});
    hone_facts_add_step(f, &(hone_step_fact){.name = "s",
                                             .op_type = "Conv",
                                             .dtype = c[i].dtype,
                                             .flops = 400000000,
                                             .executed_flops = (uint64_t)(c[i].executed * 4e8),
                                             .arithmetic = c[i].arithmetic,
                                             .anchor_node = -1,
                                             .bytes = 50000000});
    hone_facts_add_span(f, &(hone_span){.kind = HONE_SPAN_KERNEL, .end_ns = 1000000});
    hone_profile *p = profile(f);
    const hone_layer *l = &p->layers[0];
    near(l->gflops, 400);
    near(p->gflops, 400);
    near(l->flops, 4e8);
    near(l->executed_flops, c[i].executed > 0 ? c[i].executed * 4e8 : 4e8);
    near(l->roof_pct, c[i].roof_pct);
    near(l->intensity, c[i].intensity);
    assert_int_equal(p->doubt != NULL, c[i].doubt);
    if (c[i].bound == HONE_LIMIT_COMPUTE) assert_int_equal(l->bound, HONE_LIMIT_COMPUTE);
    hone_profile_destroy(p);
    hone_facts_destroy(f);
  }
}

/* A layer that beats a roof is named with its speed, and a raised roof is no longer beaten. */
static void beaten_roofs_are_raised(void **state) {
  (void)state;
  hone_facts *f = one_layer(1.2, 1, 10); /* 120 GFLOP/s under a roof of 100 */
  hone_profile *p = profile(f);
  assert_int_equal(p->beaten_count, 1);
  assert_string_equal(p->beaten[0].name, "f32");
  assert_int_equal(p->beaten[0].threads, 1);
  near(p->beaten[0].gflops, 120);
  near(p->layers[0].compute_pct, 120);
  hone_roof higher = p->beaten[0];
  size_t n;
  hone_facts_raise_roof(f, &(hone_roof){"f32", 1, 50, 0, 0}); /* lower: nothing changes */
  hone_facts_raise_roof(f, &higher);
  hone_facts_raise_roof(f, &(hone_roof){"bf16", 1, 400, 0, 0}); /* new */
  const hone_roof *roofs = hone_facts_roofs(f, &n);
  assert_int_equal(n, 4);
  near(roofs[0].gflops, 120);
  hone_profile_destroy(p);
  p = profile(f);
  assert_int_equal(p->beaten_count, 0);
  near(p->layers[0].compute_pct, 100);
  assert_null(p->doubt);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

static void filter_keeps_shares(void **state) {
  (void)state;
  hone_facts *f = hone_facts_create();
  span(f, HONE_SPAN_KERNEL, "conv_a", 0, 3);
  span(f, HONE_SPAN_KERNEL, "relu_b", 3, 4);
  hone_profile *p = NULL;
  hone_error error = {0};
  assert_int_equal(hone_profile_create(f, &(hone_profile_options){.filter = "conv*"}, &p, &error), HONE_OK);
  assert_int_equal(p->layer_count, 1);
  near(p->layers[0].pct, 75);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

/* Which multiply-accumulates integers did: by the arithmetic, else by the elements; the scalar reference does
 * none, whatever its elements are. */
static void share_of_integers(void **state) {
  (void)state;
  static const hone_step_fact steps[] = {
      {.name = "a", .op_type = "QLinearConv", .dtype = "u8", .macs = 600, .anchor_node = -1},
      {.name = "b",
       .op_type = "ConvIntegerToFloat",
       .dtype = "u8",
       .arithmetic = "int8",
       .macs = 200,
       .anchor_node = -1},
      {.name = "c",
       .op_type = "QLinearConv",
       .dtype = "bf16",
       .arithmetic = "bf16",
       .macs = 50,
       .anchor_node = -1},
      {.name = "d", .op_type = "Conv", .dtype = "f32", .macs = 100, .anchor_node = -1},
      {.name = "e",
       .op_type = "QLinearMatMul",
       .dtype = "i8",
       .macs = 50,
       .is_reference = true,
       .anchor_node = -1},
  };
  hone_facts *f = hone_facts_create();
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    hone_facts_add_step(f, &steps[i]);
    hone_facts_add_span(f, &(hone_span){.kind = HONE_SPAN_KERNEL,
                                        .step = (int32_t)i,
                                        .start_ns = i * 1000,
                                        .end_ns = i * 1000 + 1000});
  }
  hone_profile *p = profile(f);
  near(p->macs, 1000);
  near(p->integer_macs, 800);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(share_of_integers),
      cmocka_unit_test(executed_work_meets_the_roof),
      cmocka_unit_test(beaten_roofs_are_raised),
      cmocka_unit_test(one_after_the_other),
      cmocka_unit_test(nested_time_is_the_inner_ones),
      cmocka_unit_test(computation_hides_copies),
      cmocka_unit_test(equals_share),
      cmocka_unit_test(empty_and_outside),
      cmocka_unit_test(random_against_second_opinion),
      cmocka_unit_test(statistics),
      cmocka_unit_test(gap_and_residual),
      cmocka_unit_test(negative_residual),
      cmocka_unit_test(without_outer_clock),
      cmocka_unit_test(stages_and_ceiling),
      cmocka_unit_test(no_iteration_is_an_error),
      cmocka_unit_test(bounds),
      cmocka_unit_test(filter_keeps_shares),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
