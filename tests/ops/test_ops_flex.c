/* FlexAttention against what it stands for, written out, and what is refused. */
#include "base/mem.h"
#include "base/rng.h"
#include "model/ir/eval.h"
#include "model/ir/text.h"
#include "model/operators.h"
#include "model/ops/common/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "opset 23\nopset \"ai.onnx.preview\" 1\n"
#define FLEX "ai.onnx.preview::FlexAttention(%q, %k, %v)"

enum { MOST = 4 };

typedef struct pair {
  const char *name, *flex, *spelled;
  double near; /* what may differ; 0: nothing */
} pair;

static const pair pairs[] = {
    {"plain", "graph g(%q: f32[2x3x5x4], %k: f32[2x3x6x4], %v: f32[2x3x6x7]) -> (%y) {\n  %y = " FLEX "\n}\n",
     "graph g(%q: f32[2x3x5x4], %k: f32[2x3x6x4], %v: f32[2x3x6x7]) -> (%y) {\n"
     "  %a = Mul(%q, 0.5)\n  %t = Transpose(%k) {perm=[0, 1, 3, 2]}\n  %s = MatMul(%a, %t)\n"
     "  %p = Softmax(%s) {axis=-1}\n  %y = MatMul(%p, %v)\n}\n",
     1e-6},
    {"heads that share keys, both graphs, a value from outside",
     "graph g(%q: f32[2x6x5x4], %k: f32[2x2x3x4], %v: f32[2x2x3x8], %w: f32[5x3]) -> (%y) {\n  %b = Neg(%w)\n"
     "  %y = " FLEX " {scale=0.25, score_mod=graph m(%s: f32[?x?x?x?]) -> (%o) {\n"
     "    %c = Add(%s, %b)\n    %o = Add(%c, 1.5)\n  }, prob_mod=graph n(%s: f32[?x?x?x?]) -> (%o) {\n"
     "    %o = Mul(%s, %s)\n  }}\n}\n",
     "graph g(%q: f32[2x6x5x4], %k: f32[2x2x3x4], %v: f32[2x2x3x8], %w: f32[5x3]) -> (%y) {\n  %b = Neg(%w)\n"
     "  %k5 = Unsqueeze(%k, i64[1]{2})\n  %ke = Expand(%k5, i64[5]{2, 2, 3, 3, 4})\n"
     "  %kk = Reshape(%ke, i64[4]{2, 6, 3, 4})\n  %v5 = Unsqueeze(%v, i64[1]{2})\n"
     "  %ve = Expand(%v5, i64[5]{2, 2, 3, 3, 8})\n  %vv = Reshape(%ve, i64[4]{2, 6, 3, 8})\n"
     "  %t = Transpose(%kk) {perm=[0, 1, 3, 2]}\n  %m = MatMul(%q, %t)\n  %s = Mul(%m, 0.25)\n"
     "  %c = Add(%s, %b)\n  %d = Add(%c, 1.5)\n  %p = Softmax(%d) {axis=-1}\n  %pp = Mul(%p, %p)\n"
     "  %y = MatMul(%pp, %vv)\n}\n",
     1e-6},
    {"heads that share keys alone",
     "graph g(%q: f32[2x6x5x4], %k: f32[2x2x3x4], %v: f32[2x2x3x8]) -> (%y) {\n  %y = " FLEX "\n}\n",
     "graph g(%q: f32[2x6x5x4], %k: f32[2x2x3x4], %v: f32[2x2x3x8]) -> (%y) {\n"
     "  %y = Attention(%q, %k, %v)\n}\n",
     1e-6},
    {"f16, whose scores are f32",
     "graph g(%q: f16[1x1x2x4], %k: f16[1x1x3x4], %v: f16[1x1x3x4]) -> (%y) {\n  %y = " FLEX
     " {score_mod=graph m(%s: f32[?x?x?x?]) -> (%o) {\n    %o = Mul(%s, 3.0)\n  }}\n}\n",
     "graph g(%q: f16[1x1x2x4], %k: f16[1x1x3x4], %v: f16[1x1x3x4]) -> (%y) {\n  %h = Cast(0.70710678) "
     "{to=10}\n"
     "  %a = Mul(%q, %h)\n  %b = Mul(%k, %h)\n  %t = Transpose(%b) {perm=[0, 1, 3, 2]}\n  %m = MatMul(%a, "
     "%t)\n"
     "  %f = Cast(%m) {to=1}\n  %s = Mul(%f, 3.0)\n  %p = Softmax(%s) {axis=-1}\n  %w = Cast(%v) {to=1}\n"
     "  %z = MatMul(%p, %w)\n  %y = Cast(%z) {to=10}\n}\n",
     0},
    {"scores handed back, in f64",
     "graph g(%q: f64[1x2x2x4], %k: f64[1x2x3x4], %v: f64[1x2x3x1]) -> (%y) {\n  %y = " FLEX
     " {prob_mod=graph m(%s: f64[?x?x?x?]) -> (%s) {\n  }}\n}\n",
     "graph g(%q: f64[1x2x2x4], %k: f64[1x2x3x4], %v: f64[1x2x3x1]) -> (%y) {\n"
     "  %t = Transpose(%k) {perm=[0, 1, 3, 2]}\n  %m = MatMul(%q, %t)\n  %h = CastLike(0.5, %m)\n"
     "  %s = Mul(%m, %h)\n  %p = Softmax(%s) {axis=-1}\n  %y = MatMul(%p, %v)\n}\n",
     1e-7},
};

static hn_model *made(const char *name, const char *text) {
  char all[2048];
  hn_model *m = NULL;
  hone_error e = {0};
  assert_true(snprintf(all, sizeof all, HEAD "%s", text) < (int)sizeof all);
  if (hn_model_parse(name, all, strlen(all), &m, &e) || hn_model_ready(m, &e))
    fail_msg("%s: %s: %s", name, e.where, e.what);
  return m;
}

/* The model's output for numbers that depend on the input's place alone. */
static void run(const char *name, const hn_model *m, hone_tensor *out, hn_arena *keep) {
  const hone_tensor *in[MOST];
  hone_tensor given[MOST];
  hone_error e = {0};
  const hn_graph *g = m->graph;
  assert_true(g->inputs.len <= MOST);
  for (size_t i = 0; i < g->inputs.len; i++) {
    hn_rng rng = {i + 1};
    given[i].desc = g->inputs.ptr[i]->desc;
    given[i].data = hn_arena_aligned(keep, (size_t)hone_desc_bytes(&given[i].desc), 64);
    assert_non_null(given[i].data);
    for (int64_t k = 0; k < hn_count(&given[i]); k++) hn_set_f64(&given[i], k, hn_rng_unit(&rng) * 2 - 1);
    in[i] = &given[i];
  }
  if (hn_eval_graph(g, in, out, NULL, keep, NULL, NULL, NULL, &e))
    fail_msg("%s: %s: %s", name, e.where, e.what);
}

static void is_what_it_stands_for(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const pair *p = &pairs[i];
    hn_arena keep = {0};
    hone_tensor a = {0}, b = {0};
    hn_model *flex = made(p->name, p->flex), *spelled = made(p->name, p->spelled);
    run(p->name, flex, &a, &keep);
    run(p->name, spelled, &b, &keep);
    if (!hone_desc_same_dims(&a.desc, &b.desc) || a.desc.dtype != b.desc.dtype)
      fail_msg("%s: another shape", p->name);
    for (int64_t k = 0; k < hn_count(&a); k++)
      if (!(fabs(hn_get_f64(&a, k) - hn_get_f64(&b, k)) <= p->near))
        fail_msg("%s: element %lld is %g, not %g", p->name, (long long)k, hn_get_f64(&a, k),
                 hn_get_f64(&b, k));
    hn_free(a.data);
    hn_free(b.data);
    hn_arena_free(&keep);
    hn_model_destroy(flex);
    hn_model_destroy(spelled);
  }
}

static void what_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *why;
  } cases[] = {
      {"graph g(%q: f32[1x3x2x4], %k: f32[1x2x3x4], %v: f32[1x2x3x4]) -> (%y) {\n  %y = " FLEX "\n}\n",
       "heads"},
      {"graph g(%q: f32[1x2x2x4], %k: f32[1x2x3x5], %v: f32[1x2x3x4]) -> (%y) {\n  %y = " FLEX "\n}\n",
       "size"},
      {"graph g(%q: f32[1x2x2x4], %k: f32[1x2x3x4], %v: f32[1x2x4x4]) -> (%y) {\n  %y = " FLEX "\n}\n",
       "of V"},
      {"graph g(%q: f32[2x2x4], %k: f32[2x3x4], %v: f32[2x3x4]) -> (%y) {\n  %y = " FLEX "\n}\n", "rank"},
      {"graph g(%q: f32[1x2x2x?], %k: f32[1x2x3x?], %v: f32[1x2x3x4]) -> (%y) {\n  %y = " FLEX "\n}\n",
       "beforehand"},
      {"graph g(%q: f32[1x2x2x4], %k: f32[1x2x3x4], %v: f32[1x2x3x4]) -> (%y) {\n  %y = " FLEX
       " {softmax_precision=7}\n}\n",
       "softmax_precision"},
      {"graph g(%q: f32[1x2x2x4], %k: f32[1x2x3x4], %v: f32[1x2x3x4]) -> (%y) {\n  %y = " FLEX
       " {score_mod=graph m(%s: f32[?], %t: f32[?]) -> (%o) {\n    %o = Add(%s, %t)\n  }}\n}\n",
       "expected 1 and 1"},
      {"graph g(%q: f32[1x2x2x4], %k: f32[1x2x3x4], %v: f32[1x2x3x4], %c: bool[]) -> (%y) {\n  %y = " FLEX
       " {score_mod=graph m(%s: f32[?x?x?x?]) -> (%o) {\n    %o = If(%c) {then_branch=graph t() -> (%a) {\n"
       "      %a = Neg(%s)\n    }, else_branch=graph e() -> (%b) {\n      %b = Abs(%s)\n    }}\n  }}\n}\n",
       "has a graph"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char all[1024];
    hn_model *m = NULL;
    hone_error e = {0};
    snprintf(all, sizeof all, HEAD "%s", cases[i].text);
    if (hn_model_parse("refused", all, strlen(all), &m, &e)) fail_msg("case %zu: %s", i, e.what);
    assert_int_not_equal(hn_model_ready(m, &e), HONE_OK);
    if (!strstr(e.what, cases[i].why)) fail_msg("case %zu: %s", i, e.what);
    hn_model_destroy(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_what_it_stands_for),
                                     cmocka_unit_test(what_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
