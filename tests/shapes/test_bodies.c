/* Bodies of If, Loop and Scan on the CPU: their large nodes run with tactics that are chosen when they are
 * met, and the answers are those of the scalar references, also where shapes change from trip to trip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "api/api.h"
#include "base/mem.h"
#include "base/rng.h"
#include "runtime/context.h"
#include "runtime/inside.h"
#include "runtime/late_bind.h"

#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 4 };

typedef struct net {
  const char *name, *text;
  const char *fast; /* operators, each in blanks, that a tactic must do */
} net;

static const net nets[] = {
    {"scan",
     "graph g(%h: f32[40x96], %x: f32[7x40x96]) -> (%y, %all) {\n"
     "  %y, %all = Scan(%h, %x) {num_scan_inputs=1, body=graph body(%s: f32[40x96], %r: f32[40x96]) -> "
     "(%next, %out) "
     "{\n"
     "    %a = MatMul(%s, f32[96x96]rand(1, -0.1, 0.1))\n    %b = Add(%a, %r)\n    %next = Tanh(%b)\n"
     "    %out = Softmax(%next)\n  }}\n}\n",
     " MatMul Softmax Add Tanh "},
    {"small nodes, which come again",
     "graph g(%h: f32[4x96], %x: f32[7x4x96]) -> (%y, %all) {\n"
     "  %y, %all = Scan(%h, %x) {num_scan_inputs=1, body=graph body(%s: f32[4x96], %r: f32[4x96]) -> "
     "(%next, %out) "
     "{\n"
     "    %a = Add(%s, %r)\n    %b = Sigmoid(%a)\n    %c = Mul(%b, 0.5)\n    %next = Sub(%c, %s)\n"
     "    %out = Tanh(%next)\n  }}\n}\n",
     " Add Sigmoid Mul Sub Tanh "},
    {"one of two, which reads values from outside",
     "graph g(%x: f32[1x8x24x24], %c: bool[]) -> (%y) {\n  %w = Relu(%x)\n"
     "  %y = If(%c) {then_branch=graph yes() -> (%a) {\n"
     "    %p = Conv(%w, f32[8x8x3x3]rand(1, -0.3, 0.3), f32[8]rand(2)) {pads=[1, 1, 1, 1]}\n    %a = Mul(%p, "
     "%x)\n"
     "  }, else_branch=graph no() -> (%b) {\n    %q = MaxPool(%w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
     "    %b = Conv(%q, f32[8x8x1x1]rand(3, -0.3, 0.3))\n  }}\n}\n",
     " Conv "},
    {"a state that grows",
     "graph g(%x: f32[60x96], %n: i64[]) -> (%y) {\n"
     "  %y = Loop(%n, _, %x) {body=graph body(%i: i64[], %go: bool[], %s: f32[?x96]) -> (%on, %next) {\n"
     "    %on = Identity(%go)\n    %a = MatMul(%s, f32[96x96]rand(4, -0.1, 0.1))\n    %b = ReduceMax(%a) "
     "{axes=[0]}\n"
     "    %next = Concat(%s, %b) {axis=0}\n  }}\n}\n",
     " MatMul "}, /* joined, too, but by copies of long runs: nothing is chosen for these */
    {"a state that grows by many short runs",
     "graph g(%x: f32[700x5], %n: i64[]) -> (%y) {\n"
     "  %y = Loop(%n, _, %x) {body=graph body(%i: i64[], %go: bool[], %s: f32[700x?]) -> (%on, %next) {\n"
     "    %on = Identity(%go)\n    %a = ReduceMax(%s) {axes=[1]}\n    %next = Concat(%s, %a) {axis=1}\n  "
     "}}\n}\n",
     " Concat "},
    {"a branch in a loop",
     "graph g(%x: f32[64x96], %n: i64[], %c: bool[]) -> (%y) {\n  %v = Transpose(%x) {perm=[1, 0]}\n"
     "  %y = Loop(%n, _, %x) {body=graph body(%i: i64[], %go: bool[], %s: f32[64x96]) -> (%on, %next) {\n"
     "    %on = Identity(%go)\n    %next = If(%c) {then_branch=graph yes() -> (%a) {\n"
     "      %p = MatMul(%s, %v)\n      %q = Softmax(%p)\n      %a = MatMul(%q, %x)\n"
     "    }, else_branch=graph no() -> (%b) {\n      %b = Gemm(%s, f32[96x96]rand(5, -0.1, 0.1), "
     "f32[96]rand(6))\n"
     "    }}\n  }}\n}\n",
     " MatMul Gemm "},
    {"few elements of dear functions",
     "graph g(%h: f32[2x32], %x: f32[7x2x32]) -> (%y, %all) {\n"
     "  %y, %all = Scan(%h, %x) {num_scan_inputs=1, body=graph body(%s: f32[2x32], %r: f32[2x32]) -> "
     "(%next, %out) "
     "{\n"
     "    %a = Add(%s, %r)\n    %next = Tanh(%a)\n    %out = Sigmoid(%next)\n  }}\n}\n",
     " Tanh Sigmoid "},
    {"weights from codes, which a plan decodes once and a product outside reads, too",
     "graph g(%x: f32[40x96], %c: bool[]) -> (%y, %z) {\n"
     "  %w = DequantizeLinear(i8[96x96]rand(1, -99, 99), 0.01)\n  %z = MatMul(%x, %w)\n"
     "  %y = If(%c) {then_branch=graph yes() -> (%a) {\n    %p = MatMul(%x, %w)\n    %a = Relu(%p)\n"
     "  }, else_branch=graph no() -> (%b) {\n    %b = Relu(%w)\n  }}\n}\n",
     " MatMul "},
};

typedef struct given {
  hone_tensor tensor[MOST];
} given;

/* kind 1: with numbers that are none, 2: infinite ones. */
static given inputs_of(const hone_plan *plan, int64_t trips, bool yes, int kind) {
  given g = {0};
  hn_rng rng = {(uint64_t)trips + 7};
  for (uint32_t i = 0; i < hone_plan_inputs(plan); i++) {
    hone_tensor *t = &g.tensor[i];
    t->desc = *hone_plan_input_desc(plan, i);
    const int64_t n = hone_desc_count(&t->desc);
    t->data = hn_aligned(64, (size_t)hone_desc_bytes(&t->desc));
    assert_non_null(t->data);
    for (int64_t k = 0; k < n; k++)
      if (t->desc.dtype == HONE_DTYPE_F32)
        ((float *)t->data)[k] = (float)(hn_rng_unit(&rng) * 2 - 1);
      else if (t->desc.dtype == HONE_DTYPE_BOOL)
        ((bool *)t->data)[k] = yes;
      else
        ((int64_t *)t->data)[k] = trips;
    if (t->desc.dtype == HONE_DTYPE_F32 && kind) ((float *)t->data)[n / 2] = kind == 1 ? NAN : INFINITY;
  }
  return g;
}

static void compare(const net *c, const hone_tensor *got, const hone_tensor *want) {
  assert_true(hone_desc_same_dims(&got->desc, &want->desc));
  const float *g = got->data, *w = want->data;
  double range = 1e-6;
  const int64_t n = hone_desc_count(&want->desc);
  for (int64_t i = 0; i < n; i++)
    if (isfinite(w[i])) range = fmax(range, fabs((double)w[i]));
  for (int64_t i = 0; i < n; i++) {
    const bool same = isnan(w[i])   ? isnan(g[i])
                      : isinf(w[i]) ? g[i] == w[i]
                                    : fabs((double)g[i] - (double)w[i]) <= 2e-5 * range;
    if (!same) fail_msg("%s: element %lld is %g, not %g", c->name, (long long)i, (double)g[i], (double)w[i]);
  }
}

static void run(const net_session *s, const given *g) {
  hone_error e = {0};
  const hone_tensor *list[MOST];
  for (int i = 0; i < MOST; i++) list[i] = &g->tensor[i];
  if (hone_context_run(s->context, list, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
}

static void all_fast(const net *c, const hn_late *late) {
  char left[128], word[64];
  snprintf(left, sizeof left, "%s", c->fast);
  for (size_t i = 0; i < late->bodies.len; i++) {
    const hn_body_step *b = late->bodies.ptr[i];
    snprintf(word, sizeof word, " %s ", b->node->op_type);
    char *at = strstr(left, word);
    if (at && b->bound && b->bound->tactic) memset(at, ' ', strlen(word) - 1);
  }
  if (strspn(left, " ") != strlen(left)) fail_msg("%s: no tactic did%s", c->name, left);
}

static void check(const net *c, uint32_t threads, int level) {
  net_session got = net_open(net_parse("bodies", c->text), level, false, threads),
              want = net_open(net_parse("bodies", c->text), 0, true, 1);
  /* Convolutions by transforms spread what is no number over a tile, in bodies as elsewhere. */
  const int rounds = strstr(c->fast, "Conv") ? 4 : 12;
  for (int round = 0; round < rounds; round++) {
    given g = inputs_of(got.plan, (int64_t[]){3, 0, 5, 1}[round % 4], round % 2 == 0, round / 4);
    run(&got, &g);
    run(&want, &g);
    for (uint32_t i = 0; i < hone_plan_outputs(got.plan); i++)
      compare(c, hone_context_output(got.context, i), hone_context_output(want.context, i));
    for (int i = 0; i < MOST; i++) hn_free(g.tensor[i].data);
  }
  all_fast(c, &hn_api_context(got.context)->late);
  net_close(&got);
  net_close(&want);
}

static void test_answers(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
    check(&nets[i], 1, 2);
    check(&nets[i], 2, 2);
    check(&nets[i], 1, 0);
  }
}

/* A reference plan is the independent side: nothing in it goes by tactics. */
static void test_reference(void **state) {
  (void)state;
  net_session s = net_open(net_parse("bodies", nets[0].text), 0, true, 1);
  given g = inputs_of(s.plan, 1, true, 0);
  run(&s, &g);
  assert_int_equal(hn_api_context(s.context)->late.bodies.len, 0);
  for (int i = 0; i < MOST; i++) hn_free(g.tensor[i].data);
  net_close(&s);
}

/* Views take the place of what nobody reads any more, and of nothing else. */
static void test_views(void **state) {
  (void)state;
  enum { N = 12 };
  static const char text[] =
      "graph g(%x: f32[2x6], %n: i64[]) -> (%y, %z, %all) {\n"
      "  %y, %z, %all = Loop(%n, _, %x, %x) {body=graph body(%i: i64[], %go: bool[], %s: f32[2x6], %t: "
      "f32[2x6]) "
      "-> (%on, %next, %sum, %out) {\n"
      "    %on = Identity(%go)\n    %a = Reshape(%s, i64[2]{3, 4})\n    %b = Identity(%a)\n    %c = Neg(%a)\n"
      "    %d = Mul(%b, %c)\n    %next = Reshape(%d, i64[2]{2, 6})\n    %k = Identity(%t)\n"
      "    %sum = Add(%k, %s)\n    %out = Identity(%next)\n  }}\n}\n";
  for (int level = 0; level <= 2; level += 2) {
    net_session s = net_open(net_parse("views", text), level, level == 0, 1);
    for (int64_t trips = 0; trips < 4; trips++) {
      given g = inputs_of(s.plan, trips, true, 0);
      run(&s, &g);
      const float *y = hone_context_output(s.context, 0)->data, *z = hone_context_output(s.context, 1)->data,
                  *all = hone_context_output(s.context, 2)->data;
      for (int i = 0; i < N; i++) {
        float x = ((const float *)g.tensor[0].data)[i], sum = x;
        for (int64_t trip = 0; trip < trips; trip++) {
          sum += x;
          x *= -x;
          assert_true(all[trip * N + i] == x);
        }
        assert_true(y[i] == x && z[i] == sum);
      }
      for (int i = 0; i < MOST; i++) hn_free(g.tensor[i].data);
    }
    net_close(&s);
  }
}

/* Limits of a run hold in bodies, too, and the next run is as good as ever. */
static void test_limits(void **state) {
  (void)state;
  const net *c = &nets[3];
  net_session got = net_open(net_parse("bodies", c->text), 2, false, 1),
              want = net_open(net_parse("bodies", c->text), 0, true, 1);
  given g = inputs_of(got.plan, 5, true, 0);
  const hone_tensor *list[MOST];
  for (int i = 0; i < MOST; i++) list[i] = &g.tensor[i];
  hone_error e = {0};
  assert_int_equal(hone_context_run(got.context, list, &(hone_run_options){.max_nodes = 12}, &e),
                   HONE_ERROR_BUDGET);
  assert_int_equal(hone_context_run(got.context, list, &(hone_run_options){.max_bytes = 9000}, &e),
                   HONE_ERROR_MEMORY);
  run(&got, &g);
  run(&want, &g);
  compare(c, hone_context_output(got.context, 0), hone_context_output(want.context, 0));
  for (int i = 0; i < MOST; i++) hn_free(g.tensor[i].data);
  net_close(&got);
  net_close(&want);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers), cmocka_unit_test(test_reference),
                                     cmocka_unit_test(test_views), cmocka_unit_test(test_limits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
