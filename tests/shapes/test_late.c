/* Steps whose shapes only the run knows, on the CPU: they run with tactics that are chosen in the run, their
 * answers are those of the scalar references whatever shapes come one after the other, and weights that were
 * packed once stay packed. */
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

enum { ROWS = 200, MOST = 4 };

/* Rows of x whose number in n is not zero: %g, of [?, 96]. */
#define PICKED                                                                                               \
  "graph g(%x: f32[200x96], %n: i64[200]) -> (%y) {\n  %z = NonZero(%n)\n  %s = Squeeze(%z, i64[1]{0})\n"    \
  "  %g = Gather(%x, %s) {axis=0}\n"

typedef struct net {
  const char *name, *text;
  const char *fast; /* operators, each in blanks, that a tactic must do in a run with many rows */
} net;

static const net nets[] = {
    {"head of a detector",
     PICKED
     "  %a = Gemm(%g, f32[96x77]rand(1), f32[77]rand(2))\n  %b = Relu(%a)\n"
     "  %c = Gemm(%b, f32[31x77]rand(3), f32[31]rand(4)) {transB=1, alpha=0.5}\n  %y = Softmax(%c)\n}\n",
     " Gather Gemm Pointwise Softmax "},
    {"products, norms and arithmetic",
     PICKED
     "  %a = MatMul(%g, f32[96x64]rand(5))\n  %b = LayerNormalization(%a, f32[64]rand(6), f32[64]rand(7))\n"
     "  %c = Sigmoid(%b)\n  %d = Mul(%b, %c)\n  %t = Transpose(%d) {perm=[1, 0]}\n  %e = MatMul(%d, %t)\n"
     "  %y = ReduceSum(%e, i64[1]{1})\n}\n",
     " Gather MatMul LayerNormalization Transpose ReduceSum "},
    {"head of masks",
     PICKED
     "  %p = Reshape(%g, i64[4]{-1, 6, 4, 4})\n"
     "  %a = Conv(%p, f32[24x6x3x3]rand(8, -0.3, 0.3), f32[24]rand(9)) {pads=[1, 1, 1, 1]}\n  %b = Relu(%a)\n"
     "  %c = Conv(%b, f32[40x24x1x1]rand(10, -0.3, 0.3))\n  %d = MaxPool(%c) {kernel_shape=[2, 2]}\n"
     "  %y = Flatten(%d)\n}\n",
     " Conv MaxPool "},
    {"operators of another domain",
     "opset 21\nopset \"com.microsoft\" 1\n" PICKED
     "  const %w: u8[64x3x16] = rand(11)\n  const %t: f32[192] = rand(12)\n"
     "  %a = com.microsoft::MatMulNBits(%g, %w, %t) {K=96, N=64, bits=4, block_size=32}\n"
     "  %y = com.microsoft::FusedMatMul(%a, f32[64x30]rand(13)) {alpha=0.5}\n}\n",
     " com.microsoft.MatMulNBits "},
};

typedef struct given {
  hone_tensor tensor[MOST];
} given;

/* x random; n: `rows` numbers that are not zero, spread over all. */
static given inputs_of(const hone_plan *plan, uint32_t rows, uint64_t seed) {
  given g = {0};
  hn_rng rng = {seed};
  for (uint32_t i = 0; i < hone_plan_inputs(plan); i++) {
    hone_tensor *t = &g.tensor[i];
    t->desc = *hone_plan_input_desc(plan, i);
    const int64_t n = hone_desc_count(&t->desc);
    t->data = hn_aligned(64, (size_t)hone_desc_bytes(&t->desc));
    assert_non_null(t->data);
    for (int64_t k = 0; k < n; k++)
      if (t->desc.dtype == HONE_DTYPE_F32)
        ((float *)t->data)[k] = (float)(hn_rng_unit(&rng) * 2 - 1);
      else
        ((int64_t *)t->data)[k] = (k * 77 + 13) % ROWS < rows;
  }
  return g;
}

static void compare(const net *c, const hone_tensor *got, const hone_tensor *want) {
  assert_true(hone_desc_same_dims(&got->desc, &want->desc));
  const float *g = got->data, *w = want->data;
  double range = 1e-6;
  const int64_t n = hone_desc_count(&want->desc);
  for (int64_t i = 0; i < n; i++) range = fmax(range, fabs((double)w[i]));
  for (int64_t i = 0; i < n; i++)
    if (!(fabs((double)g[i] - (double)w[i]) <= 2e-5 * range))
      fail_msg("%s: element %lld is %g, not %g", c->name, (long long)i, (double)g[i], (double)w[i]);
}

/* Every step of the named operators was done by a tactic, and there is one of each. */
static void all_fast(const net *c, const hn_context *x) {
  char left[128], word[64];
  snprintf(left, sizeof left, "%s", c->fast);
  for (uint32_t k = 0; k < x->plan->steps.len; k++) {
    const hone_tactic_desc *tactic;
    if (x->plan->steps.ptr[k].kind != HN_STEP_LATE) continue;
    const hone_step *s = hn_late_step(&x->late, k, &tactic);
    snprintf(word, sizeof word, " %s ", s->anchor);
    if (!strstr(c->fast, word)) continue;
    if (!tactic || x->late.fell_back[k]) fail_msg("%s: %s is slow", c->name, s->anchor);
    char *at = strstr(left, word);
    if (at) memset(at, ' ', strlen(word));
  }
  if (strspn(left, " ") != strlen(left)) fail_msg("%s: no step of%s", c->name, left);
}

static void run(const net_session *s, const given *g) {
  hone_error e = {0};
  const hone_tensor *list[MOST];
  for (int i = 0; i < MOST; i++) list[i] = &g->tensor[i];
  if (hone_context_run(s->context, list, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
}

static void let_go(given *g) {
  for (int i = 0; i < MOST; i++) hn_free(g->tensor[i].data);
}

static void check(const net *c, uint32_t threads) {
  static const uint32_t rows[] = {150, 150, 149, 3, 200, 0, 1, 180};
  net_session got = net_open(net_parse("late", c->text), 2, false, threads),
              want = net_open(net_parse("late", c->text), 0, true, 1);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    given g = inputs_of(got.plan, rows[k], k + 1);
    run(&got, &g);
    run(&want, &g);
    compare(c, hone_context_output(got.context, 0), hone_context_output(want.context, 0));
    if (rows[k] > 100) all_fast(c, hn_api_context(got.context));
    let_go(&g);
  }
  net_close(&got);
  net_close(&want);
}

static void test_changing(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
    for (uint32_t threads = 1; threads <= 2; threads++) check(&nets[i], threads);
}

/* Weights of a product are packed once: they say nothing of rows. */
static void test_packed_once(void **state) {
  (void)state;
  net_session s = net_open(net_parse("late", nets[0].text), 2, false, 1);
  enum { STEPS = 32 };
  const hone_tactic_desc *tactic[STEPS] = {NULL};
  const void *weights[STEPS] = {NULL};
  unsigned same = 0;
  for (uint32_t rows = 150; rows > 140; rows--) {
    given g = inputs_of(s.plan, rows, rows);
    run(&s, &g);
    const hn_context *x = hn_api_context(s.context);
    unsigned packed = 0;
    assert_true(x->plan->steps.len <= STEPS);
    for (uint32_t k = 0; k < x->plan->steps.len; k++) {
      const hn_bound *b = x->late.bound[k];
      if (!b || !b->weights.memory) continue;
      packed++;
      if (tactic[k] == b->tactic) {
        assert_ptr_equal(weights[k], b->weights.memory);
        same++;
      }
      tactic[k] = b->tactic, weights[k] = b->weights.memory;
    }
    assert_int_equal(packed, 2);
    let_go(&g);
  }
  assert_true(same > 0);
  net_close(&s);
}

/* Operands that do not fit in a run, where the graph alone would say what comes out: an error, no memory that
 * is not there; and the next run is as good as ever. */
static void test_misfits(void **state) {
  (void)state;
  static const char *const texts[] = {
      PICKED "  %y = Add(%g, f32[150x96]rand(1))\n}\n",
      PICKED "  %h = Slice(%g, i64[1]{0}, i64[1]{1}, i64[1]{1})\n  %y = Sub(%h, f32[150x1]rand(2))\n}\n",
      PICKED "  %t = Transpose(%g) {perm=[1, 0]}\n  %y = MatMul(%t, f32[150x40]rand(3))\n}\n",
      PICKED "  %y = Concat(%g, f32[150x3]rand(4)) {axis=1}\n}\n",
      PICKED "  %c = Cast(%g) {to=9}\n  %y = Where(%c, f32[150x96]rand(5), f32[150x96]rand(6))\n}\n",
      PICKED "  %t = Transpose(%g) {perm=[1, 0]}\n  %z4 = ReduceSum(%t, i64[1]{0}) {keepdims=0}\n"
             "  %y = LayerNormalization(f32[3x150]rand(7), %z4)\n}\n"};
  static const uint32_t rows[] = {150, 149, 150, 3, 200, 150};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const net c = {"misfit", texts[i], ""};
    net_session got = net_open(net_parse("late", texts[i]), 2, false, 1),
                want = net_open(net_parse("late", texts[i]), 0, true, 1);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
      given g = inputs_of(got.plan, rows[k], k + 1);
      const hone_tensor *list[MOST];
      hone_error e = {0};
      for (int j = 0; j < MOST; j++) list[j] = &g.tensor[j];
      if (rows[k] == 150) {
        run(&got, &g);
        run(&want, &g);
        compare(&c, hone_context_output(got.context, 0), hone_context_output(want.context, 0));
      } else {
        if (hone_context_run(got.context, list, NULL, &e) != HONE_ERROR_INPUT || !e.what[0])
          fail_msg("%zu: %u rows: %s", i, rows[k], e.what);
        assert_int_equal(hone_context_run(want.context, list, NULL, NULL), HONE_ERROR_INPUT);
      }
      let_go(&g);
    }
    net_close(&got);
    net_close(&want);
  }
}

/* Expand keeps dimensions above 1, so that its result is known before its shape is; a shape that it does not
 * broadcast with is an error all the same. */
static void test_expand_misfits(void **state) {
  (void)state;
  enum { ROWS = 96, WIDE = 40 };
  static const int64_t shapes[][2] = {{1, WIDE}, {ROWS, 1}, {2, WIDE}, {ROWS, WIDE},
                                      {0, WIDE}, {1, 1},    {-1, WIDE}};
  static const bool good[] = {true, true, false, true, false, true, false};
  static float x[ROWS * WIDE]; /* not a trifle */
  for (int i = 0; i < ROWS * WIDE; i++) x[i] = (float)i;
  net_session s =
      net_open(net_parse("late", "graph g(%x: f32[96x40], %s: i64[2]) -> (%y) {\n  %y = Expand(%x, %s)\n}\n"),
               2, false, 1);
  for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
    int64_t to[2] = {shapes[k][0], shapes[k][1]};
    hone_tensor in[2] = {{*hone_plan_input_desc(s.plan, 0), x}, {*hone_plan_input_desc(s.plan, 1), to}};
    const hone_tensor *list[] = {&in[0], &in[1]};
    hone_error e = {0};
    assert_int_equal(hone_context_run(s.context, list, NULL, &e), good[k] ? HONE_OK : HONE_ERROR_INPUT);
    if (good[k])
      assert_memory_equal(hone_context_output(s.context, 0)->data, x, sizeof x);
    else
      assert_true(e.what[0]);
  }
  net_close(&s);
}

/* A result beyond the run's budget: nothing is made ready for it, however large its tables would be. */
static void test_beyond_budget(void **state) {
  (void)state;
  net_session s = net_open(net_parse("late", "graph g(%x: f32[1x1x40x40], %s: f32[4]) -> (%y) {\n"
                                             "  %y = Resize(%x, _, %s) {mode=\"nearest\"}\n}\n"),
                           2, false, 1);
  float x[1600] = {0}, by[2][4] = {{1, 1, 3, 3}, {1, 1, 1e5F, 1e5F}};
  for (int k = 0; k < 2; k++) {
    hone_tensor in[2] = {{*hone_plan_input_desc(s.plan, 0), x}, {*hone_plan_input_desc(s.plan, 1), by[k]}};
    const hone_tensor *list[] = {&in[0], &in[1]};
    hone_error e = {0};
    const hone_status status =
        hone_context_run(s.context, list, &(hone_run_options){.max_bytes = 1 << 20}, &e);
    assert_int_equal(status, k ? HONE_ERROR_MEMORY : HONE_OK);
    const hn_context *c = hn_api_context(s.context);
    for (uint32_t i = 0; k && i < c->plan->steps.len; i++)
      assert_true(!c->late.bound[i] || (!c->late.bound[i]->tactic && !c->late.bound[i]->blob));
  }
  net_close(&s);
}

/* The run alone knows how many dimensions x has: a slope that is larger is an error as it is elsewhere, and
 * no other result. Places of what is not zero in n are those dimensions. */
static void test_prelu_of_any_rank(void **state) {
  (void)state;
  static const char text[] =
      "graph g(%x: f32[6], %n: i64[7]) -> (%y) {\n  %z = NonZero(%n)\n  %s = Squeeze(%z, i64[1]{0})\n"
      "  %r = Reshape(%x, %s)\n  %a = Neg(%r)\n  %p = PRelu(%a, f32[2x3]{1, 2, 3, 4, 5, 6})\n  %y = "
      "Neg(%p)\n}\n";
  static const struct {
    int64_t n[7];
    int32_t rank; /* 0: refused */
  } cases[] = {{{0, 0, 1, 1}, 2},
               {{0, 0, 0, 0, 0, 0, 1}, 0},
               {{0, 1, 1, 1}, 3},
               {{0, 1, 0, 0, 0, 0, 1}, 0},
               {{0, 0, 1, 1}, 2}};
  const float x[6] = {1, -2, 3, 4, 5, -6}, want[6] = {1, -2, 9, 16, 25, -6};
  for (int level = 0; level <= 2; level += 2) {
    net_session s = net_open(net_parse("prelu", text), level, level == 0, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      hone_error e = {0};
      hone_tensor in[2] = {
          {.desc = hone_desc(HONE_DTYPE_F32, 1, (const int64_t[]){6}), .data = (void *)(uintptr_t)x},
          {.desc = hone_desc(HONE_DTYPE_I64, 1, (const int64_t[]){7}),
           .data = (void *)(uintptr_t)cases[i].n}};
      const hone_status status =
          hone_context_run(s.context, (const hone_tensor *const[]){&in[0], &in[1]}, NULL, &e);
      if (!cases[i].rank) {
        assert_int_equal(status, HONE_ERROR_INPUT);
        if (!strstr(e.what, "a slope of f32[2x3] does not broadcast to x, f32[")) fail_msg("%s", e.what);
        continue;
      }
      if (status != HONE_OK) fail_msg("%s: %s", e.where, e.what);
      const hone_tensor *y = hone_context_output(s.context, 0);
      assert_int_equal(y->desc.rank, cases[i].rank);
      for (int k = 0; k < 6; k++) assert_true(((const float *)y->data)[k] == want[k]);
    }
    net_close(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_prelu_of_any_rank), cmocka_unit_test(test_changing),
      cmocka_unit_test(test_packed_once),       cmocka_unit_test(test_misfits),
      cmocka_unit_test(test_expand_misfits),    cmocka_unit_test(test_beyond_budget)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
