/* Comparing two profiles: which layers stand beside which, and what counts as a difference. */
#include "insight/profile/rank.h"

#include <hone/compare.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct made {
  hone_facts *facts;
  hone_profile *profile;
} made;

typedef struct given {
  const char *name, *type;
  const char *nodes; /* separated by spaces; "": the layer names none */
  double ms;
} given;

enum { RUNS = 40 };

static unsigned dice;
static double noise(void) {
  dice = dice * 1664525u + 1013904223u;
  return (dice >> 8) / 16777216.0 - 0.5;
}

static int32_t node_index(hone_facts *f, const char *name) {
  size_t n;
  const hone_node_fact *nodes = hone_facts_nodes(f, &n);
  for (size_t i = 0; i < n; i++)
    if (strcmp(nodes[i].name, name) == 0) return (int32_t)i;
  return hone_facts_add_node(f, &(hone_node_fact){.name = name, .op_type = "Any", .step = -1});
}

/* RUNS iterations of these layers with +-2.5 % of noise each; the run as a whole has an outer wall. */
static made make(const given *layers, size_t count, int runs) {
  made m = {.facts = hone_facts_create()};
  hone_facts_set_meta(m.facts, &(hone_facts_meta){.tool = "test", .device = "a machine", .batch = 1});
  for (size_t i = 0; i < count; i++) {
    char text[200];
    int32_t nodes[8];
    size_t n = 0;
    snprintf(text, sizeof text, "%s", layers[i].nodes);
    for (char *save = NULL, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
      nodes[n++] = node_index(m.facts, word);
    hone_step_fact step = {.name = layers[i].name,
                           .op_type = layers[i].type,
                           .anchor_node = -1,
                           .nodes = nodes,
                           .node_count = n};
    hone_facts_add_step(m.facts, &step);
  }
  int64_t now = 0;
  for (int r = 0; r < runs; r++) {
    int64_t start = now;
    for (size_t i = 0; i < count; i++) {
      int64_t took = (int64_t)(layers[i].ms * 1e6 * (1 + 0.05 * noise()));
      hone_facts_add_span(m.facts, &(hone_span){.start_ns = now,
                                                .end_ns = now + took,
                                                .kind = HONE_SPAN_KERNEL,
                                                .iteration = r,
                                                .step = (int32_t)i});
      now += took;
    }
    hone_facts_add_span(
        m.facts,
        &(hone_span){.start_ns = start, .end_ns = now, .kind = HONE_SPAN_RUN, .iteration = r, .step = -1});
    hone_facts_add_wall(m.facts, r, now - start);
  }
  hone_error error = {0};
  if (hone_profile_create(m.facts, NULL, &m.profile, &error) != HONE_OK) fail_msg("%s", error.what);
  return m;
}

static void drop(made *m) {
  hone_profile_destroy(m->profile);
  hone_facts_destroy(m->facts);
}

static hone_comparison *compare(const made *a, const made *b) {
  hone_comparison *c = NULL;
  hone_error error = {0};
  if (hone_compare(a->profile, b->profile, NULL, &c, &error) != HONE_OK) fail_msg("%s", error.what);
  return c;
}

static const hone_compare_row *find(const hone_comparison *c, const char *name) {
  for (size_t i = 0; i < c->row_count; i++)
    if (strcmp(c->rows[i].name, name) == 0) return &c->rows[i];
  fail_msg("no row %s", name);
  return NULL;
}

#define N(list) (sizeof(list) / sizeof(list)[0])

static void slower_faster_same(void **state) {
  (void)state;
  const given before[] = {{"conv1", "Conv", "c1", 1}, {"conv2", "Conv", "c2", 2}, {"fc", "Gemm", "g", 0.5}};
  const given after[] = {
      {"conv1", "Conv", "c1", 1.2}, {"conv2", "Conv", "c2", 1.5}, {"fc", "Gemm", "g", 0.5}};
  made a = make(before, N(before), RUNS), b = make(after, N(after), RUNS);
  hone_comparison *c = compare(&a, &b);
  assert_int_equal(find(c, "conv1")->time.change, HONE_CHANGE_SLOWER);
  assert_true(fabs(find(c, "conv1")->time.delta_pct - 20) < 2);
  assert_int_equal(find(c, "conv2")->time.change, HONE_CHANGE_FASTER);
  assert_int_equal(find(c, "fc")->time.change, HONE_CHANGE_SAME);
  assert_string_equal(c->rows[0].name, "conv2"); /* the largest difference in milliseconds */
  assert_int_equal(c->wall.change, HONE_CHANGE_FASTER);
  assert_int_equal(c->slower, 1);
  assert_int_equal(c->faster, 1);
  assert_int_equal(c->same, 1);
  assert_int_equal(c->warning_count, 0);
  hone_comparison_destroy(c);
  drop(&a);
  drop(&b);
}

/* The fused layer names three nodes of the other side; a fourth was cut off one of them. */
static void fused_and_split(void **state) {
  (void)state;
  const given before[] = {{"conv", "Conv", "c", 1},
                          {"bn", "BatchNormalization", "b", 0.3},
                          {"relu", "Relu", "r", 0.2},
                          {"gelu", "Gelu", "x y", 0.4}};
  const given after[] = {{"conv+", "Conv", "c b r", 1}, {"erf", "Erf", "x", 0.3}, {"mul", "Mul", "y", 0.3}};
  made a = make(before, N(before), RUNS), b = make(after, N(after), RUNS);
  hone_comparison *c = compare(&a, &b);
  assert_int_equal(c->row_count, 2);
  const hone_compare_row *r = find(c, "conv");
  assert_int_equal(r->alignment, HONE_ALIGNMENT_FUSED);
  assert_int_equal(r->before_count, 3);
  assert_int_equal(r->after_count, 1);
  assert_int_equal(r->time.change, HONE_CHANGE_FASTER);
  assert_true(fabs(r->time.before_ms - 1.5) < 0.05 && fabs(r->time.after_ms - 1) < 0.05);
  assert_string_equal(r->aligned_by, "ONNX node");
  r = find(c, "gelu");
  assert_int_equal(r->alignment, HONE_ALIGNMENT_SPLIT);
  assert_int_equal(r->time.change, HONE_CHANGE_SLOWER);
  assert_int_equal(c->fused, 2);
  hone_comparison_destroy(c);
  drop(&a);
  drop(&b);
}

static void new_and_gone(void **state) {
  (void)state;
  const given before[] = {{"conv", "Conv", "c", 1}, {"old", "Softmax", "s", 0.4}};
  const given after[] = {{"conv", "Conv", "c", 1}, {"reformat", "Reformat", "", 0.2}};
  made a = make(before, N(before), RUNS), b = make(after, N(after), RUNS);
  hone_comparison *c = compare(&a, &b);
  assert_int_equal(find(c, "old")->alignment, HONE_ALIGNMENT_GONE);
  assert_int_equal(find(c, "reformat")->alignment, HONE_ALIGNMENT_NEW);
  assert_null(find(c, "reformat")->aligned_by);
  assert_true(find(c, "old")->time.p_value < 0);
  assert_int_equal(c->added, 1);
  assert_int_equal(c->gone, 1);
  hone_comparison_destroy(c);
  drop(&a);
  drop(&b);
}

/* ONNX Runtime's optimizer gives operators that take their neighbours in a name and a type of their own. A
 * time that comes from nothing is no "same". */
static void renamed_operators(void **state) {
  (void)state;
  const given before[] = {{"c1", "Conv", "c1", 1}, {"c2", "Conv", "c2", 0.5}, {"z", "Identity", "z", 0}};
  const given after[] = {{"FusedConv_7", "FusedConv", "FusedConv_7", 2},
                         {"q", "QLinearConv", "q", 0.5},
                         {"z", "Identity", "z", 1}};
  made a = make(before, N(before), RUNS), b = make(after, N(after), RUNS);
  hone_comparison *c = compare(&a, &b);
  assert_int_equal(c->row_count, 3);
  assert_string_equal(find(c, "c1")->aligned_by, "type and order");
  assert_int_equal(find(c, "c1")->time.change, HONE_CHANGE_SLOWER);
  assert_int_equal(find(c, "c2")->time.change, HONE_CHANGE_SAME);
  assert_int_not_equal(find(c, "z")->time.change, HONE_CHANGE_SAME);
  hone_comparison_destroy(c);
  drop(&a);
  drop(&b);
}

/* One tool knows nodes, the other only names; and kernels whose names say nothing pair by type in order. */
static void other_tools(void **state) {
  (void)state;
  const given before[] = {
      {"/a/Conv", "Conv", "/a/Conv", 1}, {"k7", "MatMul", "", 0.4}, {"k9", "MatMul", "", 0.6}};
  const given after[] = {
      {"/a/Conv", "Convolution", "", 2}, {"gemm_0", "MatMul", "", 0.5}, {"gemm_1", "MatMul", "", 0.6}};
  made a = make(before, N(before), RUNS), b = make(after, N(after), RUNS);
  hone_comparison *c = compare(&a, &b);
  assert_int_equal(c->row_count, 3);
  assert_int_equal(find(c, "/a/Conv")->alignment, HONE_ALIGNMENT_ONE);
  const hone_compare_row *r = find(c, "k7");
  assert_string_equal(r->aligned_by, "type and order");
  assert_string_equal(r->after[0]->name, "gemm_0");
  assert_int_equal(r->time.change, HONE_CHANGE_SLOWER);
  assert_int_equal(find(c, "k9")->time.change, HONE_CHANGE_SAME);
  hone_comparison_destroy(c);
  drop(&a);
  drop(&b);
}

/* Of 60 layers that did not change none is called slower or faster, in ten pairs of profiles. */
static void no_false_alarms(void **state) {
  (void)state;
  given layers[60];
  char names[60][16];
  for (int i = 0; i < 60; i++) {
    snprintf(names[i], sizeof names[i], "n%d", i);
    layers[i] = (given){names[i], "Conv", names[i], 0.1 + 0.05 * i};
  }
  for (int k = 0; k < 10; k++) {
    made a = make(layers, 60, RUNS), b = make(layers, 60, RUNS);
    hone_comparison *c = compare(&a, &b);
    assert_int_equal(c->same, 60);
    assert_int_equal(c->wall.change, HONE_CHANGE_SAME);
    hone_comparison_destroy(c);
    drop(&a);
    drop(&b);
  }
}

/* Three iterations that all lie far above thirty tell, however much they scatter. */
static void few_samples_beside_many(void **state) {
  (void)state;
  const given before[] = {{"conv", "Conv", "c", 1}}, after[] = {{"conv", "Conv", "c", 6}};
  made a = make(before, N(before), 30), b = make(after, N(after), 3);
  hone_comparison *c = compare(&a, &b);
  assert_int_equal(c->rows[0].time.change, HONE_CHANGE_SLOWER);
  /* 1 of C(33, 3) orders, on either side. */
  assert_true(fabs(c->rows[0].time.p_value - 2.0 / 5456) < 1e-9);
  hone_comparison_destroy(c);
  drop(&a);
  drop(&b);
}

/* A single iteration says nothing about chance. */
static void one_sample_is_unclear(void **state) {
  (void)state;
  const given before[] = {{"conv", "Conv", "c", 1}}, after[] = {{"conv", "Conv", "c", 2}};
  made a = make(before, 1, 1), b = make(after, 1, 1);
  hone_comparison *c = compare(&a, &b);
  assert_int_equal(c->rows[0].time.change, HONE_CHANGE_UNCLEAR);
  assert_true(c->rows[0].time.p_value < 0);
  hone_comparison_destroy(c);
  drop(&a);
  drop(&b);
}

static void warnings_and_refusals(void **state) {
  (void)state;
  const given layers[] = {{"conv", "Conv", "c", 1}};
  made a = make(layers, 1, RUNS), b = make(layers, 1, RUNS);
  hone_facts_set_meta(b.facts, &(hone_facts_meta){.tool = "trtexec", .device = "another", .batch = 8});
  hone_comparison *c = compare(&a, &b);
  assert_int_equal(c->warning_count, 3);
  hone_comparison_destroy(c);
  hone_error error = {0};
  hone_profile *filtered = NULL;
  assert_int_equal(hone_profile_create(a.facts, &(hone_profile_options){.filter = "Relu"}, &filtered, &error),
                   HONE_OK);
  assert_int_equal(hone_compare(filtered, b.profile, NULL, &c, &error), HONE_ERROR_USAGE);
  assert_null(c);
  assert_int_equal(hone_compare(a.profile, b.profile, &(hone_compare_options){.alpha = 2}, &c, &error),
                   HONE_ERROR_USAGE);
  hone_profile_destroy(filtered);
  drop(&a);
  drop(&b);
}

static void near(double a, double b) {
  if (!(fabs(a - b) <= 1e-9 + 1e-6 * fabs(b))) fail_msg("%.12g is not %.12g", a, b);
}

/* The expected figures are SciPy's mannwhitneyu (asymptotic) and ttest_ind_from_stats (unequal variances). */
static void tests_of_samples(void **state) {
  (void)state;
  const double low[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, high[] = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  near(hn_rank_test(low, 10, high, 10), 0.00018267179110955002);
  const double a[] = {1, 2, 2, 3, 5, 5, 7}, b[] = {2, 4, 5, 6, 7, 9, 9, 8};
  near(hn_rank_test(a, 7, b, 8), 0.06170669002831265);
  near(hn_rank_test(b, 8, a, 7), 0.06170669002831265);
  const double same[] = {3, 3, 3, 3, 3};
  near(hn_rank_test(same, 5, same, 5), 1);
  assert_true(hn_rank_test(low, 4, high, 10) < 0);
  const hone_sample_stats x = {.count = 10, .mean = 10, .stddev = 2},
                          y = {.count = 15, .mean = 12, .stddev = 3};
  near(hn_welch_test(&x, &y), 0.05744839625979586);
  near(hn_welch_test(&y, &x), 0.05744839625979586);
  assert_true(hn_welch_test(&(hone_sample_stats){.count = 1, .mean = 1}, &x) < 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slower_faster_same),    cmocka_unit_test(fused_and_split),
      cmocka_unit_test(new_and_gone),          cmocka_unit_test(renamed_operators),
      cmocka_unit_test(other_tools),           cmocka_unit_test(no_false_alarms),
      cmocka_unit_test(one_sample_is_unclear), cmocka_unit_test(few_samples_beside_many),
      cmocka_unit_test(warnings_and_refusals), cmocka_unit_test(tests_of_samples),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
