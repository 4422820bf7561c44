/* What is worth a custom operator, by records with made-up times and roofs: every figure is counted by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "optimize/match/match.h"

#include <hone/hone.h>
#include <math.h>
#include <string.h>

enum { RUNS = 3, ROWS = 64, COLUMNS = 1000, TENSOR = 4 * ROWS * COLUMNS };

/* A plan, and a record of runs in which its step i, changes of layout not counted, took ms[i]. */
typedef struct lab {
  net_session session;
  hone_facts *facts;
  hone_profile *profile;
} lab;

typedef struct roofs {
  double gflops, gbs; /* 0: not measured */
} roofs;

static void add_steps(const lab *l) {
  for (uint32_t i = 0; i < hone_plan_steps(l->session.plan); i++) {
    hone_step_info step;
    assert_true(hone_plan_step(l->session.plan, i, &step));
    hone_facts_add_step(l->facts, &(hone_step_fact){.name = step.name,
                                                    .op_type = step.op_type,
                                                    .tactic = step.tactic,
                                                    .dtype = "f32",
                                                    .shape_in = step.shape,
                                                    .shape_out = step.shape,
                                                    .flops = (uint64_t)step.flops,
                                                    .bytes = (uint64_t)step.bytes,
                                                    .is_reference = strcmp(step.tactic, "ref") == 0,
                                                    .anchor_node = -1});
  }
}

static void add_runs(const lab *l, const double *ms) {
  int64_t now = 0;
  hone_step_info step;
  for (int32_t run = 0; run < RUNS; run++) {
    const int64_t begin = now;
    for (uint32_t i = 0, k = 0; hone_plan_step(l->session.plan, i, &step); i++) {
      const bool counts = step.role == HONE_STEP_COMPUTE;
      const int64_t end = now + (int64_t)((counts ? ms[k] : 0.001) * 1e6);
      k += counts;
      hone_facts_add_span(l->facts, &(hone_span){.start_ns = now,
                                                 .end_ns = end,
                                                 .kind = HONE_SPAN_KERNEL,
                                                 .iteration = run,
                                                 .step = (int32_t)i});
      now = end;
    }
    hone_facts_add_span(
        l->facts,
        &(hone_span){.start_ns = begin, .end_ns = now, .kind = HONE_SPAN_RUN, .iteration = run, .step = -1});
    hone_facts_add_wall(l->facts, run, now - begin);
  }
}

static uint32_t computing(const hone_plan *plan) {
  hone_step_info step;
  uint32_t n = 0;
  for (uint32_t i = 0; hone_plan_step(plan, i, &step); i++) n += step.role == HONE_STEP_COMPUTE;
  return n;
}

static lab lab_open(const char *text, int level, uint32_t steps, const double *ms, roofs r) {
  lab l = {.session = net_open(net_parse("lab", text), level, false, 1), .facts = hone_facts_create()};
  hone_error e = {0};
  assert_non_null(l.facts);
  assert_int_equal(computing(l.session.plan), steps);
  hone_facts_set_meta(l.facts,
                      &(hone_facts_meta){.tool = "hone", .backend = "cpu", .threads = 1, .opt_level = level});
  add_steps(&l);
  add_runs(&l, ms);
  if (r.gflops > 0)
    hone_facts_add_roof(l.facts, &(hone_roof){.name = "f32", .threads = 1, .gflops = r.gflops});
  if (r.gbs > 0) hone_facts_add_roof(l.facts, &(hone_roof){.name = "DRAM", .threads = 1, .gbs = r.gbs});
  if (hone_profile_create(l.facts, NULL, &l.profile, &e) != HONE_OK) fail_msg("%s", e.what);
  return l;
}

static void lab_close(lab *l) {
  hone_profile_destroy(l->profile);
  hone_facts_destroy(l->facts);
  net_close(&l->session);
}

static hone_candidates found(const lab *l, const char *threshold) {
  hone_candidates out;
  hone_error e = {0};
  hone_thresholds *t = hone_thresholds_create();
  if (threshold) assert_int_equal(hone_thresholds_parse(t, threshold, &e), HONE_OK);
  if (hone_candidates_find(l->session.plan, l->session.model, NULL, t, l->profile, &out, &e) != HONE_OK)
    fail_msg("%s", e.what);
  hone_thresholds_destroy(t);
  return out;
}

/* The text is a pattern that matches at each place, and nowhere else. */
static void matches(const lab *l, const hone_candidate *c) {
  hn_arena arena = {0};
  hn_pattern pattern;
  hone_match match;
  hone_reason why;
  hone_error e = {0};
  uint32_t n = 0;
  if (hn_pattern_compile(c->name, c->pattern, &arena, &pattern, &e) != HONE_OK)
    fail_msg("%s: %s", c->pattern, e.what);
  const hn_model *m = hone_plan_model(l->session.plan);
  for (hone_node *node = m->graph->first; node; node = node->next)
    n += hn_pattern_match(&pattern, node, &match, &why) == HN_MATCH_YES;
  assert_int_equal(n, c->n_places);
  hn_arena_free(&arena);
}

static void near(double a, double b) {
  if (!(fabs(a - b) <= 1e-6 * fabs(b))) fail_msg("%g, not %g", a, b);
}

/* Softmax and the maximum of each row, twice; nobody else reads what Softmax makes. */
static const char twice[] = "opset 17\ngraph g(%x: f32[64x1000], %z: f32[64x1000]) -> (%a, %b) {\n"
                            "  %p = Softmax(%x) {axis=-1}\n  %a = ReduceMax(%p) {axes=[-1]}\n"
                            "  %q = Softmax(%z) {axis=-1}\n  %b = ReduceMax(%q) {axes=[-1]}\n}\n";
static const double twice_ms[] = {0.2, 0.1, 0.2, 0.1};

static void test_compound(void **state) {
  (void)state;
  lab l = lab_open(twice, 2, 4, twice_ms, (roofs){.gflops = 1000, .gbs = 10});
  hone_candidates f = found(&l, NULL);
  assert_int_equal(f.n, 1);
  assert_int_equal(f.n_worth, 1);
  near(f.wall_ms, 0.6);
  const hone_candidate *c = &f.candidate[0];
  assert_int_equal(c->kind, HONE_CANDIDATE_COMPOUND);
  assert_int_equal(c->verdict, HONE_CANDIDATE_IS_WORTH);
  assert_string_equal(c->operators, "Softmax + ReduceMax");
  assert_string_equal(c->name, "SoftmaxReduceMax");
  assert_string_equal(c->pattern, "%v1 = Softmax(%x0)\n%v2 = ReduceMax(%v1)");
  assert_int_equal(c->n_places, 2);
  for (uint32_t i = 0; i < 2; i++) {
    assert_int_equal(c->place[i].n_nodes, 2);
    assert_int_equal(c->place[i].n_steps, 2);
    assert_non_null(strstr(c->place[i].node[0], "Softmax"));
    assert_non_null(strstr(c->place[i].node[1], "ReduceMax"));
  }
  assert_string_not_equal(c->place[0].node[0], c->place[1].node[0]);
  /* each tensor between them is written once and read once; no gaps, one thread */
  near(c->bytes, 2 * 2 * TENSOR);
  near(c->traffic_ms, c->bytes / 10e6);
  near(c->starts_ms, 0);
  near(c->saved_ms, c->traffic_ms);
  near(c->ms, 0.6);
  near(c->gain_pct, 100 * (0.6 / (0.6 - c->saved_ms) - 1));
  matches(&l, c);
  hone_candidates_free(&f);
  /* what it could save is not worth it when more is asked for */
  f = found(&l, "min_gain=90");
  assert_int_equal(f.n, 1);
  assert_int_equal(f.n_worth, 0);
  assert_int_equal(f.candidate[0].verdict, HONE_CANDIDATE_IS_SMALL);
  assert_non_null(strstr(f.candidate[0].why, "less than 90 %"));
  hone_candidates_free(&f);
  /* at a twentieth of the roof as the best that can be reached nothing is left to gain */
  f = found(&l, "reachable_roof=5");
  assert_int_equal(f.candidate[0].verdict, HONE_CANDIDATE_IS_ROOF);
  near(f.candidate[0].saved_ms, 0);
  hone_candidates_free(&f);
  lab_close(&l);
}

/* Arithmetic limits both: fewer bytes make nothing faster. */
static void test_bound(void **state) {
  (void)state;
  lab l = lab_open(twice, 2, 4, twice_ms, (roofs){.gflops = 0.7, .gbs = 1000});
  assert_int_equal(l.profile->layers[0].bound, HONE_LIMIT_COMPUTE);
  hone_candidates f = found(&l, "min_gain=5");
  assert_int_equal(f.n, 1);
  assert_int_equal(f.candidate[0].verdict, HONE_CANDIDATE_IS_BOUND);
  assert_non_null(strstr(f.candidate[0].why, "limited by its arithmetic"));
  hone_candidates_free(&f);
  lab_close(&l);
}

/* Once is no habit: it is only told where it pays. A value with another reader connects nothing. */
static void test_once(void **state) {
  (void)state;
  static const char once[] = "opset 17\ngraph g(%x: f32[64x1000]) -> (%a) {\n"
                             "  %p = Softmax(%x) {axis=-1}\n  %a = ReduceMax(%p) {axes=[-1]}\n}\n";
  static const char read_twice[] = "opset 17\ngraph g(%x: f32[64x1000]) -> (%a, %p) {\n"
                                   "  %p = Softmax(%x) {axis=-1}\n  %a = ReduceMax(%p) {axes=[-1]}\n}\n";
  lab l = lab_open(once, 2, 2, twice_ms, (roofs){.gflops = 1000, .gbs = 10});
  hone_candidates f = found(&l, NULL);
  assert_int_equal(f.n, 1);
  assert_int_equal(f.candidate[0].n_places, 1);
  hone_candidates_free(&f);
  f = found(&l, "min_gain=90");
  assert_int_equal(f.n, 0);
  hone_candidates_free(&f);
  lab_close(&l);
  l = lab_open(read_twice, 2, 2, twice_ms, (roofs){.gflops = 1000, .gbs = 10});
  f = found(&l, NULL);
  assert_int_equal(f.n, 0);
  hone_candidates_free(&f);
  lab_close(&l);
}

/* Level 1 fuses them: then no custom operator is needed. */
static void test_existing(void **state) {
  (void)state;
  static const char text[] = "graph g(%x: f32[1x8x10x10]) -> (%y) {\n"
                             "  %c = Conv(%x, f32[8x8x1x1]rand(1))\n  %r = Relu(%c)\n"
                             "  %d = Conv(%r, f32[8x8x1x1]rand(2))\n  %y = Relu(%d)\n}\n";
  static const double ms[] = {0.2, 0.1, 0.2, 0.1};
  lab l = lab_open(text, 0, 4, ms, (roofs){.gflops = 1000, .gbs = 10});
  hone_candidates f = found(&l, "min_gain=0");
  assert_int_equal(f.n, 1);
  assert_int_equal(f.n_worth, 0);
  assert_string_equal(f.candidate[0].operators, "Conv + Relu");
  assert_int_equal(f.candidate[0].n_places, 2);
  assert_int_equal(f.candidate[0].verdict, HONE_CANDIDATE_IS_EXISTING);
  assert_int_equal(f.candidate[0].level, 1);
  matches(&l, &f.candidate[0]); /* its constants, too */
  assert_non_null(strstr(f.candidate[0].why, "--level 1"));
  hone_candidates_free(&f);
  lab_close(&l);
}

/* Arithmetic in f64 has no fast kernel. */
static void test_fallback(void **state) {
  (void)state;
  static const char text[] = "opset 17\ngraph g(%x: f64[64x1000]) -> (%a, %b) {\n"
                             "  %p = Softmax(%x) {axis=-1}\n  %a = ReduceMax(%p) {axes=[-1]}\n"
                             "  %b = Softmax(%x) {axis=0}\n}\n";
  static const double ms[] = {0.4, 0.2, 0.4}, slow[] = {400, 1, 400};
  lab l = lab_open(text, 2, 3, ms, (roofs){.gflops = 1000, .gbs = 10});
  hone_candidates f = found(&l, NULL);
  assert_int_equal(f.n, 2); /* no compounds of such steps: they come first */
  assert_int_equal(f.n_worth, 2);
  const hone_candidate *c = &f.candidate[0];
  assert_int_equal(c->kind, HONE_CANDIDATE_FALLBACK);
  assert_string_equal(c->operators, "Softmax");
  assert_string_equal(c->name, "OwnSoftmax");
  assert_null(c->pattern);
  assert_int_equal(c->n_places, 2);
  assert_int_equal(c->place[0].n_nodes, 1);
  near(c->ms, 0.8);
  /* half of the roof: each tensor of 8 bytes an element is read and written */
  near(c->saved_ms, 0.8 - 2 * 2 * (2 * 2.0 * TENSOR / 10e6));
  assert_non_null(strstr(c->why, "scalar reference"));
  assert_string_equal(f.candidate[1].operators, "ReduceMax");
  hone_candidates_free(&f);
  lab_close(&l);
  /* far from the roof: as many times as fast as a vector has numbers of 8 bytes */
  l = lab_open(text, 2, 3, slow, (roofs){.gflops = 1000, .gbs = 10});
  const uint32_t isa = hone_engine_machine(l.session.engine)->isa;
  f = found(&l, NULL);
  near(f.candidate[0].saved_ms, 800 * (1 - 1.0 / (isa & HONE_ISA_AVX512 ? 8 : isa & HONE_ISA_AVX2 ? 4 : 2)));
  hone_candidates_free(&f);
  lab_close(&l);
}

/* One of four takes ten times as long for its bytes. */
static void test_misfit(void **state) {
  (void)state;
  static const char text[] =
      "opset 17\ngraph g(%x: f32[64x1000], %y: f32[65x1000], %z: f32[66x1000], %u: f32[64x1001]) -> "
      "(%a, %b, %c, %d) {\n"
      "  %a = Softmax(%x) {axis=-1}\n  %b = Softmax(%y) {axis=-1}\n  %c = Softmax(%z) {axis=-1}\n"
      "  %d = Softmax(%u) {axis=-1}\n}\n";
  static const double even[] = {0.1, 0.1, 0.1, 0.1}, odd[] = {0.1, 0.1, 0.1, 1};
  lab l = lab_open(text, 2, 4, odd, (roofs){.gflops = 1000, .gbs = 10});
  hone_candidates f = found(&l, NULL);
  assert_int_equal(f.n, 1);
  const hone_candidate *c = &f.candidate[0];
  assert_int_equal(c->kind, HONE_CANDIDATE_MISFIT);
  assert_int_equal(c->verdict, HONE_CANDIDATE_IS_WORTH);
  assert_int_equal(c->n_places, 1);
  assert_true(c->roof_pct < 10 && c->usual_pct > 45 && c->usual_pct < 60);
  assert_true(c->saved_ms > 0.85 && c->saved_ms < 0.95);
  hone_candidates_free(&f);
  lab_close(&l);
  l = lab_open(text, 2, 4, even, (roofs){.gflops = 1000, .gbs = 10});
  f = found(&l, NULL);
  assert_int_equal(f.n, 0);
  hone_candidates_free(&f);
  lab_close(&l);
}

/* Two ways to write one sum are one form; of a difference they are two, and only what follows is the same. */
static void test_forms(void **state) {
  (void)state;
  static const char text[] =
      "opset 17\ngraph g(%x: f32[64x1000], %z: f32[64x1000]) -> (%a, %b, %c, %d) {\n"
      "  %p = Softmax(%x)\n  %pz = Add(%p, %z)\n  %a = ReduceMax(%pz) {axes=[-1]}\n"
      "  %q = Softmax(%x)\n  %zq = Add(%z, %q)\n  %b = ReduceMax(%zq) {axes=[-1]}\n"
      "  %r = Softmax(%z)\n  %rx = Sub(%r, %x)\n  %c = ReduceMax(%rx) {axes=[-1]}\n"
      "  %s = Softmax(%z)\n  %xs = Sub(%x, %s)\n  %d = ReduceMax(%xs) {axes=[-1]}\n}\n";
  static const double ms[] = {0.2, 0.1, 0.1, 0.2, 0.1, 0.1, 0.2, 0.1, 0.1, 0.2, 0.1, 0.1};
  lab l = lab_open(text, 0, 12, ms, (roofs){.gflops = 1000, .gbs = 10});
  hone_candidates f = found(&l, "min_gain=0");
  assert_int_equal(f.n, 2);
  assert_string_equal(f.candidate[0].operators, "Softmax + Add + ReduceMax");
  assert_string_equal(f.candidate[0].pattern,
                      "%v1 = Softmax(%x0)\n%v2 = Add(%x1, %v1)\n%v3 = ReduceMax(%v2)");
  assert_int_equal(f.candidate[0].n_places, 2);
  matches(&l, &f.candidate[0]);
  assert_string_equal(f.candidate[1].operators, "Sub + ReduceMax");
  matches(&l, &f.candidate[1]);
  assert_int_equal(f.candidate[1].n_places, 2);
  hone_candidates_free(&f);
  lab_close(&l);
}

static void test_usage(void **state) {
  (void)state;
  hone_error e = {0};
  hone_candidates f;
  lab l = lab_open(twice, 2, 4, twice_ms, (roofs){.gflops = 1000, .gbs = 10});
  hone_profile *part = NULL;
  assert_int_equal(hone_profile_create(l.facts, &(hone_profile_options){.filter = "Softmax"}, &part, &e),
                   HONE_OK);
  assert_int_equal(hone_candidates_find(l.session.plan, l.session.model, NULL, NULL, part, &f, &e),
                   HONE_ERROR_USAGE);
  assert_int_equal(f.n, 0);
  hone_candidates_free(&f);
  hone_profile_destroy(part);
  assert_int_equal(hone_candidates_find(l.session.plan, NULL, NULL, NULL, l.profile, &f, &e),
                   HONE_ERROR_USAGE);
  hone_candidates_free(NULL);
  lab_close(&l);
  assert_string_equal(hone_candidate_kind_name(HONE_CANDIDATE_MISFIT), "misfit");
  assert_string_equal(hone_candidate_verdict_name(HONE_CANDIDATE_IS_ROOF), "at_the_roof");
  assert_string_equal(hone_candidate_kind_name((hone_candidate_kind)9), "?");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_compound), cmocka_unit_test(test_bound),
                                     cmocka_unit_test(test_once),     cmocka_unit_test(test_existing),
                                     cmocka_unit_test(test_fallback), cmocka_unit_test(test_misfit),
                                     cmocka_unit_test(test_forms),    cmocka_unit_test(test_usage)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
