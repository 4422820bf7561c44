/* The bounds of each class of operators: no order of the arithmetic leaves them, no kernel of any tier does,
 * and what does is named. */
#include "net.h"
#include "backends/cpu/kernels/features.h"
#include "improve/feeds.h"
#include "improve/judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hone/hone.h>

static uint32_t seed = 1;
static float noise(void) { return (float)((seed = seed * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1; }

/* ---- orders of one sum */

static void test_orders(void **state) {
  (void)state;
  enum { MOST = 4608 };
  static const int lengths[] = {1, 2, 9, 64, 576, MOST};
  static float a[MOST], b[MOST];
  assert_true(hn_gamma(1) > 0x1p-24 && hn_gamma(1) < 0x1.00001p-24);
  assert_true(isinf(hn_gamma(1 << 24)));
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int trial = 0; trial < 20; trial++) {
      const int n = lengths[l];
      float sum[4] = {0}, lane[16] = {0};
      double sizes = 0, exact = 0;
      for (int i = 0; i < n; i++) {
        a[i] = noise() * (float)ldexp(1, trial - i % 20);
        b[i] = noise();
        sizes += fabs((double)a[i] * b[i]);
        exact += (double)a[i] * b[i];
      }
      for (int i = 0; i < n; i++) {
        sum[0] += a[i] * b[i];
        sum[1] += a[n - 1 - i] * b[n - 1 - i];
        sum[2] = fmaf(a[i], b[i], sum[2]);
        lane[i % 16] = fmaf(a[i], b[i], lane[i % 16]);
      }
      for (int width = 8; width; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
      sum[3] = lane[0];
      for (int i = 0; i < 4; i++) {
        assert_true(fabs((double)sum[i] - exact) <= 2 * hn_gamma(n) * sizes);
        for (int k = 0; k < i; k++)
          assert_true(fabs((double)sum[i] - (double)sum[k]) <= 2 * hn_gamma(n) * sizes);
      }
    }
}

/* ---- kernels */

/* A side that has run on random inputs, and all that its steps made. */
typedef struct ran {
  hn_side side;
  hn_feed feeds[4];
  uint32_t n;
  hn_values kept;
} ran;

static void run(ran *r, hn_model *m, const char *isa, uint64_t inputs) {
  hone_error e = {0};
  *r = (ran){0};
  if (hn_side_open(m, &(hn_side_options){.level = 2, .threads = 2, .isa = isa}, &r->side, &e) != HONE_OK)
    fail_msg("%s", e.what);
  r->n = r->side.plan->n_inputs;
  assert_true(r->n <= 4);
  const hn_feed_case c = {.seed = inputs, .only = -1};
  assert_int_equal(hn_feeds_make(r->side.plan, m, &c, r->feeds, &e), HONE_OK);
  assert_int_equal(hn_values_of_run(&r->side, r->feeds, r->n, &r->kept, &e), HONE_OK);
}

static void end(ran *r) {
  hn_values_free(&r->kept);
  hn_feeds_free(r->feeds, r->n);
  hn_side_close(&r->side);
}

static hn_judgement judge(const ran *r, const hn_step *s) {
  hn_judgement j;
  hone_error e = {0};
  if (hn_judge_step(r->side.plan, s, &r->kept, r->feeds, r->n, NULL, &j, &e) != HONE_OK)
    fail_msg("%s", e.what);
  return j;
}

/* How many steps of each class were judged; none may be over its bound. */
static void judge_all(const ran *r, const char *net, unsigned *of) {
  for (size_t i = 0; i < r->side.plan->steps.len; i++) {
    const hn_step *s = &r->side.plan->steps.ptr[i];
    const hn_judgement j = judge(r, s);
    if (!j.known) continue;
    of[j.tolerance.class]++;
    if (j.over)
      fail_msg("%s: '%s' (%s, K = %lld) is %g apart, bound %g", net, s->desc.name, j.tolerance.class_name,
               (long long)j.tolerance.terms, j.measured, j.bound);
  }
}

static const char *const layers[] = {
    "graph g(%x: f32[2x19x17x15]) -> (%y) {\n  %a = Conv(%x, f32[33x19x3x3]rand(1), f32[33]rand(2)) "
    "{pads=[1,1,1,1]}\n"
    "  %b = Relu(%a)\n  %c = AveragePool(%b) {kernel_shape=[3,2], strides=[2,2]}\n"
    "  %d = MaxPool(%c) {kernel_shape=[2,2]}\n  %e = GlobalAveragePool(%d)\n  %y = Softmax(%e) {axis=1}\n}\n",
    "graph g(%x: f32[7x300]) -> (%y) {\n  %a = MatMul(%x, f32[300x65]rand(3))\n  %b = Add(%a, "
    "f32[65]rand(4))\n"
    "  %c = Sigmoid(%b)\n  %d = Gemm(%c, f32[65x40]rand(5), f32[40]rand(6)) {alpha=0.5}\n  %e = Tanh(%d)\n"
    "  %y = ReduceSum(%e, i64[1]{1})\n}\n",
    "graph g(%x: f32[11x130]) -> (%s, %t, %u, %v, %w) {\n  %s = Exp(%x)\n  %t = Erf(%x)\n  %u = "
    "HardSwish(%x)\n"
    "  %v = Softmax(%x)\n  %w = Softplus(%x)\n}\n",
    /* weights down to denormal ones */
    "graph g(%x: f32[4x3000]) -> (%y) {\n  %a = Mul(%x, f32[]{60})\n  %y = Softmax(%a)\n}\n",
    "graph g(%x: f32[1x24x20x20]) -> (%y) {\n  %a = Conv(%x, f32[24x1x5x5]rand(7)) {group=24, "
    "pads=[2,2,2,2]}\n"
    "  %b = Clip(%a, f32[]{0}, f32[]{6})\n  %c = Conv(%b, f32[40x24x1x1]rand(8), f32[40]rand(9))\n"
    "  %y = HardSwish(%c)\n}\n",
    "graph g(%x: f32[1x64x57x56]) -> (%y) {\n  %a = Conv(%x, f32[96x64x3x3]rand(10), f32[96]rand(11)) "
    "{pads=[1,1,1,1], strides=[2,2]}\n  %y = Relu(%a)\n}\n"};

static void test_kernels(void **state) {
  (void)state;
  unsigned of[HN_TOLERANCE_CLASSES] = {0};
  for (hn_isa isa = HN_ISA_SCALAR; isa <= hn_cpu()->isa; isa++)
    for (size_t i = 0; hn_cpu_runs(isa) && i < sizeof layers / sizeof *layers; i++)
      for (uint64_t k = 1; k <= 3; k++) {
        hn_model *m = net_parse("test", layers[i]);
        ran r;
        run(&r, m, hn_isa_name(isa), k);
        judge_all(&r, layers[i], of);
        end(&r);
        hone_model_release(m);
      }
  assert_true(of[HN_TOLERANCE_SUM] >= 15);
  assert_true(of[HN_TOLERANCE_FUNCTION] >= 6);
  assert_true(of[HN_TOLERANCE_SOFTMAX] >= 3);
  assert_true(of[HN_TOLERANCE_EXACT] >= 3);
  assert_true(of[HN_TOLERANCE_WINOGRAD] >= 3);
}

/* Whole networks, which have what lowering makes of them. */
static void test_networks(void **state) {
  (void)state;
  static const char *const nets[] = {"resnet50", "mobilenetv2", "bert_base"};
  unsigned of[HN_TOLERANCE_CLASSES] = {0};
  for (size_t i = 0; i < 3; i++) {
    hone_model *m = NULL;
    hone_error e = {0};
    ran r;
    const hone_zoo_options o = {
        .batch = 1, .width = i == 2 ? 0.09 : 0.1, .size = i == 2 ? 16 : 64, .seed = 1};
    assert_int_equal(hone_zoo_build(nets[i], &o, &m, &e), HONE_OK);
    run(&r, m, NULL, 1);
    judge_all(&r, nets[i], of);
    end(&r);
    hone_model_release(m);
  }
  assert_true(of[HN_TOLERANCE_SUM] >= 40);
}

/* ---- what is wrong */

static hn_step *step_of(const ran *r, const char *anchor) {
  for (size_t i = 0; i < r->side.plan->steps.len; i++)
    if (strcmp(r->side.plan->steps.ptr[i].desc.anchor, anchor) == 0) return &r->side.plan->steps.ptr[i];
  fail_msg("no %s", anchor);
  return NULL;
}

/* One element moved by a little more than its bound, which is far below what whole answers are allowed. */
static void test_just_above(void **state) {
  (void)state;
  static const struct {
    const char *text, *anchor;
  } nets[] = {{"graph g(%x: f32[7x30]) -> (%y) {\n  %y = MatMul(%x, f32[30x65]rand(3))\n}\n", "MatMul"},
              {"graph g(%x: f32[11x130]) -> (%y) {\n  %y = Exp(%x)\n}\n", "Pointwise"}};
  for (size_t i = 0; i < 2; i++) {
    hn_model *m = net_parse("test", nets[i].text);
    ran r;
    run(&r, m, "scalar", 5);
    const hn_step *s = step_of(&r, nets[i].anchor);
    const hn_judgement before = judge(&r, s);
    assert_true(before.known && !before.over);
    hone_tensor *t = hn_map_get(&r.kept.kept, hn_value_of_step(r.side.plan, s, 0)->name);
    float *v = (float *)t->data + before.element, was = *v, low = INFINITY, high = -INFINITY;
    for (int64_t k = 0; k < hone_desc_count(&t->desc); k++) {
      low = fminf(low, ((float *)t->data)[k]);
      high = fmaxf(high, ((float *)t->data)[k]);
    }
    const double moved = 2.2 * before.bound;
    *v = (float)((double)was + moved);
    const hn_judgement after = judge(&r, s);
    assert_true(fabs((double)*v - (double)was) < 1e-4 * ((double)high - (double)low));
    assert_true(after.known && after.over);
    assert_int_equal(after.element, before.element);
    *v = was;
    assert_false(judge(&r, s).over);
    end(&r);
    hone_model_release(m);
  }
}

/* Every class has its words, and K is that of the largest sum. */
static void test_stated(void **state) {
  (void)state;
  hn_model *m = net_parse("test", layers[1]);
  hone_verify_result r;
  hone_error e = {0};
  assert_int_equal(hone_verify(m, NULL, &(hone_verify_options){.inputs = 2, .threads = 2}, &r, &e), HONE_OK);
  assert_int_equal(r.verdict, HONE_VERDICT_SAME);
  assert_null(r.judgement.kind);
  bool seen = false;
  for (uint32_t i = 0; i < r.n_tolerances; i++) {
    const hone_tolerance *t = &r.tolerances[i];
    assert_true(t->kind[0] && t->formula[0] && t->of[0] && t->source[0] && t->nodes > 0);
    if (strcmp(t->kind, "sum of products") != 0) continue;
    seen = true;
    assert_int_equal(t->terms, 301); /* with the bias */
    assert_true(fabs(t->share - 602 * 0x1p-24) < 1e-8);
  }
  assert_true(seen);
  hone_model_release(m);
}

/* Other weights are not the step's fault, and the judgement says so. */
static void test_other_weights(void **state) {
  (void)state;
  hn_model *a = net_parse("test",
                          "graph g(%x: f32[7x300]) -> (%y) {\n  %y = MatMul(%x, f32[300x65]rand(3))\n}\n"),
           *b = net_parse("test",
                          "graph g(%x: f32[7x300]) -> (%y) {\n  %y = MatMul(%x, f32[300x65]rand(4))\n}\n");
  hone_verify_result r;
  hone_error e = {0};
  assert_int_equal(hone_verify(a, b, &(hone_verify_options){.inputs = 2, .threads = 2}, &r, &e), HONE_OK);
  assert_int_equal(r.verdict, HONE_VERDICT_DIFFERENT);
  assert_string_equal(r.judgement.kind, "sum of products");
  assert_int_equal(r.judgement.terms, 300);
  assert_false(r.judgement.over);
  assert_true(r.judgement.measured <= r.judgement.bound);
  hone_model_release(a);
  hone_model_release(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders),   cmocka_unit_test(test_kernels),
                                     cmocka_unit_test(test_networks), cmocka_unit_test(test_just_above),
                                     cmocka_unit_test(test_stated),   cmocka_unit_test(test_other_weights)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
