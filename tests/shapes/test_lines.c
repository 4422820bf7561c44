/* A plan becomes one for other sizes: it then is what a plan made for these sizes is, number by number, and
 * gives the same answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "api/api.h"
#include "api/lines.h"
#include "base/mem.h"
#include "optimize/plan/line.h"

#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_INPUTS = 4 };

/* Keys and values that were cached; positions, their cosines and a mask follow from how many there are. */
static const char cache[] =
    "ir 8\nopset 17\ngraph g(%x: f32[1x1x32], %pk: f32[1x2xPx16], %pv: f32[1x2xPx16]) -> (%y, %k, %v) {\n"
    "  const %wq: f32[32x32] = rand(1, -0.2, 0.2)\n  const %wk: f32[32x32] = rand(2, -0.2, 0.2)\n"
    "  const %wv: f32[32x32] = rand(3, -0.2, 0.2)\n  const %wo: f32[32x32] = rand(4, -0.2, 0.2)\n"
    "  const %f: f32[16] = rand(5, 0.1, 1)\n"
    "  %s = Shape(%pk)\n  %p = Gather(%s, i64{2})\n  %t = Add(%p, i64{1})\n"
    "  %r = Range(%p, %t, i64{1})\n  %rf = Cast(%r) {to=1}\n  %ru = Unsqueeze(%rf, i64[1]{1})\n"
    "  %a = Mul(%ru, %f)\n  %c = Cos(%a)\n  %n = Sin(%a)\n"
    "  %all = Range(i64{0}, %t, i64{1})\n  %seen = LessOrEqual(%all, %r)\n  %bias = Where(%seen, f32{0}, "
    "f32{-9999})\n"
    "  %q0 = MatMul(%x, %wq)\n  %k0 = MatMul(%x, %wk)\n  %v0 = MatMul(%x, %wv)\n"
    "  %q1 = Reshape(%q0, i64[4]{1, 1, 2, 16})\n  %k1 = Reshape(%k0, i64[4]{1, 1, 2, 16})\n"
    "  %v1 = Reshape(%v0, i64[4]{1, 1, 2, 16})\n"
    "  %q2 = Transpose(%q1) {perm=[0, 2, 1, 3]}\n  %k2 = Transpose(%k1) {perm=[0, 2, 1, 3]}\n"
    "  %v2 = Transpose(%v1) {perm=[0, 2, 1, 3]}\n"
    "  %q3 = Mul(%q2, %c)\n  %q = Add(%q3, %n)\n  %k3 = Mul(%k2, %c)\n  %k4 = Add(%k3, %n)\n"
    "  %k = Concat(%pk, %k4) {axis=2}\n  %v = Concat(%pv, %v2) {axis=2}\n"
    "  %kt = Transpose(%k) {perm=[0, 1, 3, 2]}\n  %sc = MatMul(%q, %kt)\n  %sm = Mul(%sc, f32{0.25})\n"
    "  %sb = Add(%sm, %bias)\n  %pr = Softmax(%sb) {axis=-1}\n  %o = MatMul(%pr, %v)\n"
    "  %ot = Transpose(%o) {perm=[0, 2, 1, 3]}\n  %or = Reshape(%ot, i64[3]{1, 1, 32})\n"
    "  %y0 = MatMul(%or, %wo)\n  %y = Add(%y0, %x)\n}\n";
/* Text of any length: a part of a table of positions, a triangle, a mean over the length. */
static const char length[] =
    "ir 8\nopset 17\ngraph g(%x: f32[1xTx32]) -> (%y, %z) {\n"
    "  const %pos: f32[1x200x32] = rand(1)\n  const %w: f32[32x32] = rand(2, -0.2, 0.2)\n"
    "  %s = Shape(%x)\n  %t = Gather(%s, i64{1})\n  %tu = Unsqueeze(%t, i64[1]{0})\n"
    "  %p = Slice(%pos, i64[1]{0}, %tu, i64[1]{1})\n  %a = Add(%x, %p)\n  %b = MatMul(%a, %w)\n"
    "  %r = Range(i64{0}, %t, i64{1})\n  %c = Unsqueeze(%r, i64[1]{1})\n  %m = LessOrEqual(%r, %c)\n"
    "  %bias = Where(%m, f32{0}, f32{-9999})\n"
    "  %bt = Transpose(%b) {perm=[0, 2, 1]}\n  %q = MatMul(%a, %bt)\n  %qb = Add(%q, %bias)\n"
    "  %e = Softmax(%qb) {axis=-1}\n  %y = MatMul(%e, %b)\n"
    "  %tf = Cast(%t) {to=1}\n  %sum = ReduceSum(%y, i64[1]{1}) {keepdims=0}\n  %z = Div(%sum, %tf)\n}\n";
/* Each convolution halves the length, rounded: no line but every other one. */
static const char halves[] =
    "ir 8\nopset 17\ngraph g(%x: f32[1x4xT]) -> (%y) {\n"
    "  const %w: f32[8x4x3] = rand(1)\n  %c = Conv(%x, %w) {strides=[2]}\n  %y = Relu(%c)\n}\n";
/* A body that reads what is around it, and a branch. */
static const char bodies[] =
    "ir 8\nopset 17\ngraph g(%x: f32[Tx8], %c: bool[]) -> (%y) {\n"
    "  %a = Neg(%x)\n"
    "  %y = If(%c) {then_branch=graph t() -> (%u) { %u = Mul(%a, %x) }, else_branch=graph e() -> (%v) {\n"
    "    %s = Shape(%x) %v = ConstantOfShape(%s) {value=f32[1]{2}} }}\n}\n";

/* What is so at one size alone, or at every so many: a condition, a remainder in a program, a mask that hides
 * something only there, and a branch. */
static const char once[] = "ir 8\nopset 17\ngraph g(%x: f32[Tx8]) -> (%y) {\n"
                           "  %s = Shape(%x)\n  %t = Gather(%s, i64{0})\n  %c = Equal(%t, i64{30})\n  %r = "
                           "Relu(%x)\n  %e = Neg(%r)\n"
                           "  %y = Where(%c, %r, %e)\n}\n";
static const char every[] =
    "ir 8\nopset 17\ngraph g(%x: f32[Tx8]) -> (%y) {\n"
    "  %s = Shape(%x)\n  %t = Gather(%s, i64{0})\n  %q = Div(%t, i64{5})\n  %m = Mul(%q, i64{5})\n"
    "  %rest = Sub(%t, %m)\n  %c = Less(%rest, i64{1})\n  %f = Cast(%c) {to=1}\n  %r = Relu(%x)\n"
    "  %y = Add(%r, %f)\n}\n";
static const char hidden[] =
    "ir 8\nopset 17\ngraph g(%x: f32[Tx8]) -> (%y) {\n"
    "  %s = Shape(%x)\n  %t = Gather(%s, i64{0})\n  %a = Add(%t, i64{3})\n  %q5 = Div(%a, i64{5})\n"
    "  %w = Mul(%q5, i64{5})\n  %i = Range(i64{0}, %t, i64{1})\n  %col = Unsqueeze(%i, i64[1]{0})\n"
    "  %row = Unsqueeze(%i, i64[1]{1})\n  %far = Add(%row, %w)\n  %sees = Less(%col, %far)\n"
    "  %xt = Transpose(%x) {perm=[1, 0]}\n  %q = MatMul(%x, %xt)\n  %h = Where(%sees, %q, f32{-10000})\n"
    "  %p = Softmax(%h) {axis=-1}\n  %y = MatMul(%p, %x)\n}\n";
static const char branch[] =
    "ir 8\nopset 17\ngraph g(%x: f32[Tx8]) -> (%y) {\n"
    "  %s = Shape(%x)\n  %t = Gather(%s, i64{0})\n  %m = Mod(%t, i64{5})\n  %c = Equal(%m, i64{0})\n"
    "  %y = If(%c) {then_branch=graph t() -> (%u) { %u = Mul(%x, %x) }, else_branch=graph e() -> (%v) {\n"
    "    %v = Neg(%x) }}\n}\n";

/* One size may grow while the other shrinks: what an output takes is most at one end of such a line, what is
 * made behind it at the other. */
static const char apart[] =
    "ir 8\nopset 17\ngraph g(%x: f32[Tx16], %p: f32[Px16]) -> (%a, %y) {\n"
    "  const %w: f32[16x16] = rand(1)\n"
    "  %a = Neg(%x)\n  %c = Concat(%a, %p) {axis=0}\n  %m = MatMul(%c, %w)\n  %s = Softmax(%m) {axis=-1}\n"
    "  %t = Transpose(%s) {perm=[1, 0]}\n  %q = MatMul(%t, %c)\n  %y = Softmax(%q) {axis=-1}\n}\n";

typedef struct symbol {
  const char *name;
  int64_t size;
} symbol;

static hone_plan *fresh(hone_engine *engine, hone_model *m, const hone_weights *w, const hone_binding *b,
                        uint32_t n) {
  hone_plan *plan = NULL;
  hone_error e = {0};
  const hone_plan_options o = {.level = 2, .bindings = b, .n_bindings = n, .weights = w};
  if (hone_plan_create(engine, m, &o, &plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return plan;
}

static hn_sample *sample(hone_plan *p) {
  hone_tensor_desc *more[MOST_INPUTS];
  const uint32_t n = hone_plan_inputs(p);
  for (uint32_t i = 0; i < n; i++) more[i] = &hn_api_plan_bound(p)[i].desc;
  return hn_sample_take(hn_api_plan_inside(p), more, n);
}

/* Runs both on the same inputs. */
static void same_answers(hone_plan *a, hone_plan *b, bool exact) {
  hone_plan *plan[2] = {a, b};
  hone_context *context[2];
  hone_tensor in[MOST_INPUTS] = {0};
  const hone_tensor *list[MOST_INPUTS];
  for (uint32_t i = 0; i < hone_plan_inputs(a); i++) {
    in[i].desc = *hone_plan_input_desc(b, i);
    assert_true(hone_desc_same_dims(&in[i].desc, hone_plan_input_desc(a, i)));
    assert_true(hone_desc_same_dims(&in[i].desc, &hone_plan_bound(a, i)->desc));
    in[i].data = hn_calloc((size_t)hone_desc_bytes(&in[i].desc) + 8, 1);
    for (int64_t k = 0; k < hone_desc_count(&in[i].desc); k++)
      if (in[i].desc.dtype == HONE_DTYPE_F32)
        ((float *)in[i].data)[k] = (float)((k * 37 + i) % 97) / 48 - 1;
      else
        ((uint8_t *)in[i].data)[k] = 1;
    list[i] = &in[i];
  }
  for (int i = 0; i < 2; i++) {
    hone_error e = {0};
    assert_int_equal(hone_context_create(plan[i], &context[i], NULL), HONE_OK);
    if (hone_context_run(context[i], list, NULL, &e) != HONE_OK) fail_msg("%s", e.what);
  }
  for (uint32_t k = 0; k < hone_plan_outputs(a); k++) {
    const hone_tensor *x = hone_context_output(context[0], k), *y = hone_context_output(context[1], k);
    assert_true(hone_desc_same_dims(&x->desc, &y->desc));
    if (exact) assert_memory_equal(x->data, y->data, (size_t)hone_desc_bytes(&x->desc));
    for (int64_t i = 0; i < hone_desc_count(&x->desc); i++)
      assert_true(fabsf(((const float *)x->data)[i] - ((const float *)y->data)[i]) < 1e-4f);
  }
  for (int i = 0; i < 2; i++) hone_context_destroy(context[i]);
  for (uint32_t i = 0; i < hone_plan_inputs(a); i++) hn_free(in[i].data);
}

static hn_lines_counts last; /* of the sizes that were followed last */

/* Plans for these sizes of the dimension, one after the other: how many came from a plan that was there. */
static uint32_t follow(const char *text, const char *dimension, const int64_t *size, uint32_t n) {
  hone_engine *engine = NULL;
  hone_model *m = net_parse("lines", text);
  hone_weights *w = NULL;
  hone_plan *plan[2] = {NULL, NULL};
  uint32_t moved = 0;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  for (uint32_t i = 0; i < n; i++) {
    const hone_binding b = {.symbol = dimension, .rank = 1, .dim = {size[i]}};
    hone_plan **p = &plan[i % 2];
    bool done = false;
    hone_error e = {0};
    for (uint32_t k = 0; i > 1 && k < 2 && !done; k++) {
      p = &plan[(i + k) % 2];
      if (hone_plan_rebind(*p, &b, 1, &done, &e) != HONE_OK) fail_msg("%s", e.what);
    }
    moved += done;
    hone_plan *want = fresh(engine, m, w, &b, 1);
    if (done) {
      hone_plan *like = NULL; /* the one with other tactics may be fresh: this has the same */
      const hone_plan_options o = {.level = 2, .bindings = &b, .n_bindings = 1};
      hn_packed_store *store = NULL;
      hone_model *prepared = NULL;
      struct hn_lines *lines = NULL;
      assert_int_equal(hn_api_weights(w, engine, m, true, &prepared, &store, &lines, NULL), HONE_OK);
      assert_int_equal(hn_api_plan_like(*p, &o, store, &like, &e), HONE_OK);
      hn_sample *x = sample(*p), *y = sample(like);
      assert_non_null(x);
      assert_non_null(y);
      /* A power of two divides by multiplying: the steps are others, and the numbers those all the same. */
      const bool special = dimension[0] == 'T' && (size[i] & (size[i] - 1)) == 0;
      if (!special && !hn_sample_same(x, y))
        fail_msg("moved to %s=%lld it is another plan", dimension, (long long)size[i]);
      hn_sample_free(x);
      hn_sample_free(y);
      same_answers(*p, like, !special);
      same_answers(*p, want, false);
      hone_plan_destroy(like);
      hone_plan_destroy(want);
    } else {
      hone_plan_destroy(*p);
      *p = want;
    }
  }
  hn_packed_store *store = NULL;
  hone_model *prepared = NULL;
  hn_lines *lines = NULL;
  assert_int_equal(hn_api_weights(w, engine, m, true, &prepared, &store, &lines, NULL), HONE_OK);
  hn_lines_count(lines, &last);
  assert_int_equal(last.moved, moved);
  hone_weights_destroy(w); /* before its plans, which go on */
  for (int k = 0; k < 2; k++) {
    bool done = false;
    const hone_binding b = {.symbol = dimension, .rank = 1, .dim = {size[n - 1 - (uint32_t)k] + 1}};
    assert_int_equal(hone_plan_rebind(plan[k], &b, 1, &done, NULL), HONE_OK);
    hone_plan_destroy(plan[k]);
  }
  hone_model_release(m);
  hone_engine_destroy(engine);
  return moved;
}

static void test_growing(void **state) {
  (void)state;
  int64_t size[60];
  for (int i = 0; i < 60; i++) size[i] = 5 + i;
  assert_true(follow(cache, "P", size, 60) >= 55);
  assert_true(last.looked < 5 && last.lines == 1);
}

static void test_any_length(void **state) {
  (void)state;
  static const int64_t size[] = {23, 57, 12, 90, 2, 3, 31, 150, 64, 1, 23, 199, 200, 40, 17, 33, 100, 5};
  assert_true(follow(length, "T", size, sizeof size / sizeof *size) >= 9);
}

/* Rounded quotients are seen as what they are. */
static void test_rounded(void **state) {
  (void)state;
  static const int64_t any[] = {33, 34, 35, 36, 37, 38, 39, 40}, odd[] = {33, 35, 37, 39, 51, 77, 43, 45};
  assert_int_equal(follow(halves, "T", any, 8), 0);
  assert_true(last.looked < 8 && last.lines == 0); /* what is in vain is not tried every time */
  assert_true(follow(halves, "T", odd, 8) >= 5);
}

static void test_bodies(void **state) {
  (void)state;
  static const int64_t size[] = {4, 5, 6, 7, 8, 9, 30, 8};
  assert_true(follow(bodies, "T", size, 8) >= 5);
}

/* Plans at both ends are alike, and one between them is another: it is made from nothing. */
static void test_otherwise_between(void **state) {
  (void)state;
  static const char *const model[] = {once, every, hidden, branch};
  static const int64_t size[] = {17, 19, 22, 24, 33, 34, 39, 30, 32, 41, 21, 25, 28, 20, 36, 31};
  for (size_t i = 0; i < sizeof model / sizeof *model; i++) {
    const uint32_t moved = follow(model[i], "T", size, sizeof size / sizeof *size);
    assert_in_range(moved, 4, 15); /* where nothing is otherwise they move */
  }
}

/* A plan that is in use stays; so does one that knows of no others, or was made without hone_weights. */
static void test_refused(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  hone_model *m = net_parse("lines", length);
  hone_weights *w = NULL;
  hone_error e = {0};
  bool done = true;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  const hone_binding b[] = {{.symbol = "T", .rank = 1, .dim = {10}}, {.symbol = "T", .rank = 1, .dim = {11}}};
  hone_plan *p = fresh(engine, m, w, &b[0], 1), *alone = fresh(engine, m, NULL, &b[0], 1);
  hone_context *c = NULL;
  assert_int_equal(hone_context_create(p, &c, NULL), HONE_OK);
  assert_int_equal(hone_plan_rebind(p, &b[1], 1, &done, &e), HONE_ERROR_USAGE);
  hone_context_destroy(c);
  assert_int_equal(hone_plan_rebind(NULL, &b[1], 1, &done, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_plan_rebind(p, &b[1], 1, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_plan_rebind(p, NULL, 1, &done, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_plan_rebind(p, &b[1], 1, &done, &e), HONE_OK);
  assert_false(done);
  assert_int_equal(hone_plan_rebind(p, NULL, 0, &done, &e), HONE_OK);
  assert_false(done);
  assert_int_equal(hone_plan_rebind(alone, &b[1], 1, &done, &e), HONE_OK);
  assert_false(done);
  hone_plan_destroy(p);
  hone_plan_destroy(alone);
  hone_weights_destroy(w);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* Runs a context that is there, and one of a plan made for the sizes, on the same inputs. */
static void goes_on(hone_context *c, hone_plan *want, bool bound) {
  const hone_plan *p = hone_context_plan(c);
  hone_tensor in[MOST_INPUTS] = {0}, out[MOST_INPUTS] = {0};
  const hone_tensor *list[MOST_INPUTS], *places[MOST_INPUTS];
  hone_context *other = NULL;
  hone_error e = {0};
  const uint32_t n_in = hone_plan_inputs(p), n_out = hone_plan_outputs(p);
  for (uint32_t i = 0; i < n_in; i++) {
    in[i].desc = *hone_plan_input_desc(p, i);
    assert_true(hone_desc_same_dims(&in[i].desc, hone_plan_input_desc(want, i)));
    float *x = hn_calloc((size_t)hone_desc_bytes(&in[i].desc) + 8, 1);
    for (int64_t k = 0; k < hone_desc_count(&in[i].desc); k++) x[k] = (float)((k * 37 + i) % 97) / 48 - 1;
    in[i].data = x;
    list[i] = &in[i];
  }
  for (uint32_t i = 0; i < n_out; i++) {
    out[i].desc = *hone_plan_output_desc(p, i);
    out[i].data = hn_calloc((size_t)hone_desc_bytes(&out[i].desc) + 8, 1);
    places[i] = i == 1 ? NULL : &out[i];
  }
  if (bound && hone_context_bind_outputs(c, places, &e) != HONE_OK) fail_msg("%s", e.what);
  assert_int_equal(hone_context_create(want, &other, NULL), HONE_OK);
  if (hone_context_run(c, list, NULL, &e) != HONE_OK) fail_msg("%s", e.what);
  if (hone_context_run(other, list, NULL, &e) != HONE_OK) fail_msg("%s", e.what);
  for (uint32_t i = 0; i < n_out; i++) {
    const hone_tensor *x = hone_context_output(c, i), *y = hone_context_output(other, i);
    assert_true((x->data == out[i].data) == (bound && i != 1));
    assert_true(hone_desc_same_dims(&x->desc, &y->desc));
    for (int64_t k = 0; k < hone_desc_count(&x->desc); k++)
      assert_true(fabsf(((const float *)x->data)[k] - ((const float *)y->data)[k]) < 1e-4f);
  }
  hone_context_destroy(other);
  for (uint32_t i = 0; i < n_in; i++) hn_free(in[i].data);
  for (uint32_t i = 0; i < n_out; i++) hn_free(out[i].data);
}

/* A context stays while its plan becomes one for other sizes. */
static void test_context(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  hone_model *m = net_parse("lines", cache);
  hone_weights *w = NULL;
  hone_context *c = NULL, *second = NULL;
  hone_error e = {0};
  uint32_t moved = 0;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  hone_binding b = {.symbol = "P", .rank = 1, .dim = {5}};
  hone_plan *before = fresh(engine, m, w, &b, 1);
  b.dim[0] = 6;
  hone_plan *p = fresh(engine, m, w, &b, 1);
  assert_int_equal(hone_context_create(p, &c, NULL), HONE_OK);
  for (int i = 0; i < 70; i++) { /* twice as long, and longer than what the plan was placed for */
    bool done = true;
    b.dim[0] = i < 3 ? 7 + i : 7 + i * i / 3;
    assert_int_equal(hone_context_rebind(c, &b, 1, &done, &e), HONE_OK);
    if (!done) continue;
    moved++;
    hone_plan *want = fresh(engine, m, w, &b, 1);
    goes_on(c, want, i % 3 != 0);
    hone_plan_destroy(want);
  }
  assert_in_range(moved, 60, 70);
  /* Not with other contexts, nor while it records. */
  bool done = true;
  assert_int_equal(hone_context_create(p, &second, NULL), HONE_OK);
  assert_int_equal(hone_context_rebind(c, &b, 1, &done, &e), HONE_ERROR_USAGE);
  assert_false(done);
  hone_context_destroy(second);
  hone_facts *facts = hone_facts_create();
  assert_int_equal(hone_context_record(c, facts, 1, &e), HONE_OK);
  assert_int_equal(hone_context_rebind(c, &b, 1, &done, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_record(c, NULL, 0, &e), HONE_OK);
  assert_int_equal(hone_context_rebind(c, &b, 1, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_rebind(c, NULL, 1, &done, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_rebind(NULL, &b, 1, &done, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_rebind(c, &b, 1, &done, &e), HONE_OK);
  assert_true(done);
  hone_facts_destroy(facts);
  hone_context_destroy(c);
  hone_plan_destroy(p);
  hone_plan_destroy(before);
  hone_weights_destroy(w);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* What a context was bound to is let go of, also where the plan stays what it is: no sizes show a line, and
 * without weights of several plans there are none. */
static void test_unbound(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  hone_model *m = net_parse("lines", cache);
  hone_weights *w = NULL;
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  for (int i = 0; i < 2; i++) {
    hone_binding b = {.symbol = "P", .rank = 1, .dim = {5}}, other = {.symbol = "P", .rank = 1, .dim = {9}};
    hone_plan *p = fresh(engine, m, i ? NULL : w, &b, 1), *want = fresh(engine, m, NULL, &b, 1);
    hone_context *c = NULL;
    bool done = true;
    assert_int_equal(hone_context_create(p, &c, NULL), HONE_OK);
    goes_on(c, want, true);
    assert_int_equal(hone_context_rebind(c, &other, 1, &done, &e), HONE_OK);
    assert_false(done);
    goes_on(c, want, false); /* nor into memory that is not there any more */
    goes_on(c, want, true);
    hone_context_destroy(c);
    hone_plan_destroy(want);
    hone_plan_destroy(p);
  }
  hone_weights_destroy(w);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* Results stay while others are made, in whichever direction sizes go. */
static void test_apart(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  hone_model *m = net_parse("lines", apart);
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  for (int64_t t = -3; t <= 3; t++)
    for (int64_t by = -3; by <= 3; by++) {
      hone_weights *w = NULL;
      hone_plan *p[2];
      hone_context *c = NULL;
      hone_binding b[2] = {{.symbol = "T", .rank = 1, .dim = {40}}, {.symbol = "P", .rank = 1, .dim = {40}}};
      assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
      for (int i = 0; i < 2; i++, b[0].dim[0] += t, b[1].dim[0] += by) p[i] = fresh(engine, m, w, b, 2);
      assert_int_equal(hone_context_create(p[1], &c, NULL), HONE_OK);
      for (int i = 0; i < 12; i++) {
        const int64_t k = (i * 7) % 12 + 1; /* to and fro */
        bool done = false;
        b[0].dim[0] = 40 + k * t, b[1].dim[0] = 40 + k * by;
        assert_int_equal(hone_context_rebind(c, b, 2, &done, &e), HONE_OK);
        if (!done) continue;
        hone_plan *want = fresh(engine, m, NULL, b, 2);
        goes_on(c, want, false);
        hone_plan_destroy(want);
      }
      hone_context_destroy(c);
      for (int i = 0; i < 2; i++) hone_plan_destroy(p[i]);
      hone_weights_destroy(w);
    }
  hone_model_release(m);
  hone_engine_destroy(engine);
}

static void test_memory_short(void **state) {
  (void)state;
  bool reached = true, ever = false;
  hone_engine *engine = NULL;
  hone_model *m = net_parse("lines", cache);
  hone_weights *w = NULL;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  const hone_binding b[] = {{.symbol = "P", .rank = 1, .dim = {5}}, {.symbol = "P", .rank = 1, .dim = {6}}};
  hone_plan *other = fresh(engine, m, w, &b[0], 1);
  for (uint64_t n = 1; reached; n += 1 + n / 8) {
    hone_plan *p = fresh(engine, m, w, &b[1], 1);
    const hone_binding next = {.symbol = "P", .rank = 1, .dim = {(int64_t)(7 + n % 90)}};
    bool done = false;
    hn_mem_fail_after(n);
    const hone_status status = hone_plan_rebind(p, &next, 1, &done, NULL);
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    assert_true(status == HONE_OK || status == HONE_ERROR_MEMORY);
    if (status == HONE_OK) {
      hone_plan *want = fresh(engine, m, w, done ? &next : &b[1], 1);
      same_answers(p, want, false);
      hone_plan_destroy(want);
    }
    ever |= done;
    hone_plan_destroy(p);
  }
  assert_true(ever);
  hone_plan_destroy(other);
  hone_weights_destroy(w);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_growing),
                                     cmocka_unit_test(test_any_length),
                                     cmocka_unit_test(test_rounded),
                                     cmocka_unit_test(test_bodies),
                                     cmocka_unit_test(test_otherwise_between),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_context),
                                     cmocka_unit_test(test_unbound),
                                     cmocka_unit_test(test_apart),
                                     cmocka_unit_test(test_memory_short)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
