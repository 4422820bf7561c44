/* hone_weights: plans of one model for several shapes have their packed weights, and what moves them, once.
 *
 *   test_weights [device] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "temporary.h"

#include "api/api.h"
#include "api/objects.h"
#include "base/half.h"
#include "base/mem.h"

#include <hone/hone.h>
#include <math.h>
#include <string.h>

/* An embedding that is the last layer's matrix, too, as of most small language models; keys that were cached.
 */
static const char tied[] =
    "graph g(%id: i64[1xT], %past: f32[1xPx64]) -> (%y, %present) {\n  const %e: f32[50x64] = rand(2)\n"
    "  %x = Gather(%e, %id) {axis=0}\n  %k = MatMul(%x, f32[64x64]rand(1))\n"
    "  %present = Concat(%past, %k) {axis=1}\n  %t = Transpose(%present) {perm=[0, 2, 1]}\n"
    "  %s = MatMul(%x, %t)\n  %p = Softmax(%s)\n  %a = MatMul(%p, %present)\n"
    "  %w = Transpose(%e) {perm=[1, 0]}\n  %y = MatMul(%a, %w)\n}\n";

static hone_model *model_of(void) {
  hn_model *m = net_parse("tied", tied);
  return m;
}

static hone_plan *plan_of(hone_engine *engine, hone_model *m, int64_t tokens, int64_t past,
                          const hone_weights *weights, const char *passes) {
  hone_plan *plan = NULL;
  hone_error e = {0};
  const hone_binding shapes[] = {{.input = "id", .rank = 2, .dim = {1, tokens}},
                                 {.input = "past", .rank = 3, .dim = {1, past, 64}}};
  const hone_plan_options o = {
      .level = 2, .bindings = shapes, .n_bindings = 2, .weights = weights, .passes = passes};
  if (hone_plan_create(engine, m, &o, &plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return plan;
}

/* Runs both on the same inputs: the answers are the same bit for bit. */
static void same(hone_plan *a, hone_plan *b, int64_t tokens, int64_t past) {
  enum { MOST = 64 };
  int64_t ids[MOST];
  static float cache[MOST * 64];
  for (int i = 0; i < MOST; i++) ids[i] = i * 7 % 50;
  for (int i = 0; i < MOST * 64; i++) cache[i] = (float)(i % 13) / 13 - 0.5f;
  hone_tensor in[2] = {{hone_desc(HONE_DTYPE_I64, 2, (const int64_t[]){1, tokens}), ids},
                       {hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){1, past, 64}), cache}};
  const hone_tensor *list[2];
  hone_plan *plan[2] = {a, b};
  hone_context *context[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hone_context_create(plan[i], &context[i], NULL), HONE_OK);
    for (uint32_t k = 0; k < 2; k++) list[k] = &in[strcmp(hone_plan_input_name(plan[i], k), "id") != 0];
    assert_int_equal(hone_context_run(context[i], list, NULL, NULL), HONE_OK);
  }
  for (uint32_t k = 0; k < 2; k++) {
    const hone_tensor *x = hone_context_output(context[0], k), *y = hone_context_output(context[1], k);
    assert_true(hone_desc_same_dims(&x->desc, &y->desc));
    assert_memory_equal(x->data, y->data, (size_t)hone_desc_bytes(&x->desc));
  }
  for (int i = 0; i < 2; i++) hone_context_destroy(context[i]);
}

static const char *device; /* NULL: the processor */

static hone_engine *engine_of(void) {
  hone_engine *engine = NULL;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1, .device = device}, &engine, NULL),
                   HONE_OK);
  return engine;
}

static void test_growing(void **state) {
  (void)state;
  hone_engine *engine = engine_of();
  hone_model *m = model_of();
  hone_weights *w = NULL;
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  assert_int_equal(hone_weights_bytes(w), 0);
  hone_plan *kept[6];
  uint64_t first = 0;
  for (int64_t i = 0; i < 6; i++) {
    kept[i] = plan_of(engine, m, 1, i, w, NULL);
    hone_plan *alone = plan_of(engine, m, 1, i, NULL, NULL);
    same(kept[i], alone, 1, i);
    hone_plan_destroy(alone);
    if (i == 0) first = hone_weights_bytes(w);
    /* Nothing is packed again. */
    if (i) assert_true(hn_api_plan(kept[i])->found_bytes >= (64 * 64 + 64 * 50) * sizeof(float));
  }
  /* Two matrices of 64 x 64 and 64 x 50 numbers, once; each plan's own blob is small. */
  assert_true(first >= (64 * 64 + 64 * 50) * sizeof(float));
  assert_true(hone_weights_bytes(w) < 2 * first);
  hone_weights_destroy(w); /* before its plans, which go on */
  hone_model_release(m);
  hone_plan *alone = NULL;
  m = model_of();
  for (int64_t i = 5; i >= 0; i--) {
    alone = plan_of(engine, m, 1, i, NULL, NULL);
    same(kept[i], alone, 1, i);
    hone_plan_destroy(alone);
    hone_plan_destroy(kept[i]);
  }
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* Other tactics for more rows; passes that are chosen by name fold nothing behind the caller's back. */
static void test_mixed(void **state) {
  (void)state;
  hone_engine *engine = engine_of();
  hone_model *m = model_of();
  hone_weights *w = NULL;
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  static const struct {
    int64_t tokens, past;
    const char *passes;
  } cases[] = {{1, 3, NULL}, {17, 0, NULL}, {1, 4, "-fold_constants"}, {40, 20, NULL}, {1, 3, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hone_plan *a = plan_of(engine, m, cases[i].tokens, cases[i].past, w, cases[i].passes),
              *b = plan_of(engine, m, cases[i].tokens, cases[i].past, NULL, cases[i].passes);
    assert_int_equal(hone_plan_steps(a), hone_plan_steps(b));
    same(a, b, cases[i].tokens, cases[i].past);
    hone_plan_destroy(a);
    hone_plan_destroy(b);
  }
  hone_weights_destroy(w);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* Four products by one matrix, as a recurrence that was unrolled has them, and one by another. */
static void test_twins(void **state) {
  (void)state;
  static const char text[] =
      "graph g(%x: f32[1x128]) -> (%y) {\n  const %w: f32[128x128] = rand(1, -0.1, 0.1)\n"
      "  const %v: f32[128x128] = rand(2, -0.1, 0.1)\n  %a = MatMul(%x, %w)\n  %b = Tanh(%a)\n"
      "  %c = MatMul(%b, %w)\n  %d = Tanh(%c)\n  %e = MatMul(%d, %v)\n  %f = Tanh(%e)\n  %h = MatMul(%f, "
      "%w)\n"
      "  %i = Tanh(%h)\n  %j = MatMul(%i, %w)\n  %y = Tanh(%j)\n}\n";
  for (int saved = 0; saved < 2; saved++) {
    net_session s = net_open(net_parse("twins", text), 2, false, 1),
                want = net_open(net_parse("twins", text), 0, true, 1);
    uint64_t arena, constants, workspace;
    hone_plan_memory(s.plan, &arena, &constants, &workspace);
    assert_true(constants < 3 * 128 * 128 * sizeof(float));
    assert_true(hn_api_plan(s.plan)->twin_bytes >= 3 * 128 * 128 * sizeof(float));
    float x[128];
    for (int i = 0; i < 128; i++) x[i] = (float)(i % 11) / 11 - 0.4f;
    const hone_tensor in = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){1, 128}), x}, *list[] = {&in};
    hone_plan *plan = s.plan;
    hone_context *context = s.context;
    if (saved) { /* in the file each step has its own */
      char folder[256], path[280];
      assert_non_null(mkdtemp(temporary(folder, sizeof folder, "twins")));
      snprintf(path, sizeof path, "%s/twins.hone", folder);
      assert_int_equal(hone_plan_save(s.plan, path, NULL), HONE_OK);
      assert_int_equal(hone_plan_open(s.engine, path, &plan, NULL), HONE_OK);
      assert_int_equal(hone_context_create(plan, &context, NULL), HONE_OK);
      assert_int_equal(temporary_remove(folder), 0);
    }
    assert_int_equal(hone_context_run(context, list, NULL, NULL), HONE_OK);
    assert_int_equal(hone_context_run(want.context, list, NULL, NULL), HONE_OK);
    const float *got = hone_context_output(context, 0)->data,
                *right = hone_context_output(want.context, 0)->data;
    for (int i = 0; i < 128; i++) assert_true(fabsf(got[i] - right[i]) < 1e-5f);
    if (saved) {
      hone_context_destroy(context);
      hone_plan_destroy(plan);
    }
    net_close(&s);
    net_close(&want);
  }
}

/* Products of codes by one matrix whose scales, zero points and biases are each their own: the codes of
 * weights are there once, all else as often as there are steps. */
static void test_coded_twins(void **state) {
  (void)state;
  static const char text[] =
      "ir 8\nopset 17\ngraph g(%x: f32[2x128]) -> (%y) {\n  const %w: i8[128x128] = rand(1, -100, 100)\n"
      "  const %v: i8[128x128] = rand(2, -100, 100)\n  const %s: f32[128] = rand(3, 0.001, 0.002)\n"
      "  const %k: f32[128] = rand(4, -0.5, 0.5)\n  const %n: f32[128] = rand(5, -0.5, 0.5)\n"
      "  const %z: i8[128] = rand(6, 0, 0)\n  const %za: u8 = {120}\n  const %zb: u8 = {133}\n"
      "  %wd = DequantizeLinear(%w, %s, %z) {axis=1}\n  %vd = DequantizeLinear(%v, %s, %z) {axis=1}\n"
      "  %aq = QuantizeLinear(%x, 0.01, %za)\n  %a = DequantizeLinear(%aq, 0.01, %za)\n"
      "  %b = Gemm(%a, %wd, %k)\n"
      "  %cq = QuantizeLinear(%b, 0.02, %zb)\n  %c = DequantizeLinear(%cq, 0.02, %zb)\n"
      "  %d = Gemm(%c, %wd, %n)\n"
      "  %eq = QuantizeLinear(%d, 0.04, %za)\n  %e = DequantizeLinear(%eq, 0.04, %za)\n"
      "  %f = Gemm(%e, %vd, %n)\n"
      "  %gq = QuantizeLinear(%f, 0.03, %zb)\n  %g = DequantizeLinear(%gq, 0.03, %zb)\n"
      "  %h = Gemm(%g, %wd)\n"
      "  %iq = QuantizeLinear(%h, 0.05, %zb)\n  %i = DequantizeLinear(%iq, 0.05, %zb)\n"
      "  %y = Identity(%i)\n}\n";
  net_session s = net_open(net_parse("coded twins", text), 2, false, 1),
              want = net_open(net_parse("coded twins", text), 0, true, 1);
  uint32_t coded = 0; /* where the processor multiplies bytes faster than floats */
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    hone_step_info info;
    coded += hone_plan_step(s.plan, i, &info) && strcmp(info.tactic, "int8_gemm") == 0;
  }
  assert_true(coded < 4 || hn_api_plan(s.plan)->twin_bytes >= 128 * 128);
  float x[256];
  for (int i = 0; i < 256; i++) x[i] = (float)(i % 23) / 11 - 0.9f;
  const hone_tensor in = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){2, 128}), x}, *list[] = {&in};
  assert_int_equal(hone_context_run(s.context, list, NULL, NULL), HONE_OK);
  assert_int_equal(hone_context_run(want.context, list, NULL, NULL), HONE_OK);
  const float *got = hone_context_output(s.context, 0)->data,
              *right = hone_context_output(want.context, 0)->data;
  int apart = 0; /* a number in the middle between two codes becomes either, and so do few that follow */
  for (int i = 0; i < 256; i++) apart += fabsf(got[i] - right[i]) > 0.051f;
  assert_int_equal(apart, 0);
  net_close(&s);
  net_close(&want);
}

/* Weights of 16 bits are packed from the file as they lie; a table of them is read so. */
static void test_halves(void **state) {
  (void)state;
  static const char text[] =
      "graph g(%id: i64[1xT]) -> (%y) {\n  const %e: f16[300x128] = rand(2)\n"
      "  const %w: f16[128x320] = rand(3)\n  %x = Gather(%e, %id) {axis=0}\n  %y = MatMul(%x, %w)\n}\n";
  hone_engine *engine = engine_of();
  hone_model *m = net_parse("halves", text);
  hone_weights *w = NULL;
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  for (int64_t tokens = 1; tokens < 1000; tokens = 8 * tokens + 5) {
    const hone_binding shape = {.input = "id", .rank = 2, .dim = {1, tokens}};
    hone_plan_options o = {.level = 2, .bindings = &shape, .n_bindings = 1, .weights = w};
    hone_plan *plan[3] = {NULL};
    hone_context *context[3] = {NULL};
    int64_t ids[1000];
    for (int i = 0; i < 1000; i++) ids[i] = i * 7 % 300;
    const hone_tensor in = {hone_desc(HONE_DTYPE_I64, 2, (const int64_t[]){1, tokens}), ids}, *list[] = {&in};
    for (int i = 0; i < 3; i++) { /* with others, alone, and one operator after the other */
      if (i) o.weights = NULL;
      o.reference = i == 2, o.level = i == 2 ? 0 : 2;
      assert_int_equal(hone_plan_create(engine, m, &o, &plan[i], NULL), HONE_OK);
      assert_int_equal(hone_context_create(plan[i], &context[i], NULL), HONE_OK);
      assert_int_equal(hone_context_run(context[i], list, NULL, NULL), HONE_OK);
    }
    const hone_tensor *y[3];
    for (int i = 0; i < 3; i++) y[i] = hone_context_output(context[i], 0);
    assert_memory_equal(y[0]->data, y[1]->data, (size_t)hone_desc_bytes(&y[0]->desc));
    for (int64_t i = 0; i < tokens * 320; i++) {
      const float got = hn_f16_to_f32(((const uint16_t *)y[0]->data)[i]),
                  right = hn_f16_to_f32(((const uint16_t *)y[2]->data)[i]);
      assert_true(fabsf(got - right) < 0.02f);
    }
    for (int i = 0; i < 3; i++) {
      hone_context_destroy(context[i]);
      hone_plan_destroy(plan[i]);
    }
  }
  /* The table and the matrix, in 16 bits, and no more of them in 32 on a device that stores so. */
  if (device) assert_true(hone_weights_bytes(w) < 4 * 320 * 128 * sizeof(uint16_t));
  hone_weights_destroy(w);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* Bytes of one matrix, packed in two ways that are of one size. */
static void test_ways(void **state) {
  (void)state;
  static const char text[] =
      "graph g(%x: f16[8x128]) -> (%y) {\n  const %w: f16[128x320] = rand(3)\n  %y = MatMul(%x, %w)\n}\n";
  hone_engine *engine = engine_of();
  char *usual = engine->tactics;
  hone_model *m = net_parse("ways", text);
  hone_weights *w = NULL;
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  uint16_t x[8 * 128];
  for (int i = 0; i < 8 * 128; i++) x[i] = hn_f32_to_f16((float)(i % 17) / 17 - 0.4f);
  const hone_tensor in = {hone_desc(HONE_DTYPE_F16, 2, (const int64_t[]){8, 128}), x}, *list[] = {&in};
  hone_plan *plan[3];
  hone_context *context[3];
  static char mma[] = "matmul_mma*,reformat,cast,pointwise", few[] = "matmul_few*,reformat,cast,pointwise";
  for (int i = 0; i < 3; i++) { /* one tactic; another with the same weights; and that on its own */
    const hone_plan_options o = {.level = 2, .weights = i < 2 ? w : NULL};
    engine->tactics = i ? few : mma;
    assert_int_equal(hone_plan_create(engine, m, &o, &plan[i], NULL), HONE_OK);
    engine->tactics = usual;
    assert_int_equal(hone_context_create(plan[i], &context[i], NULL), HONE_OK);
    assert_int_equal(hone_context_run(context[i], list, NULL, NULL), HONE_OK);
  }
  hone_step_info info[3];
  for (int i = 0; i < 3; i++) assert_true(hone_plan_step(plan[i], 0, &info[i]));
  assert_string_not_equal(info[0].tactic, info[1].tactic);
  assert_string_equal(info[1].tactic, info[2].tactic);
  assert_memory_equal(hone_context_output(context[1], 0)->data, hone_context_output(context[2], 0)->data,
                      8 * 320 * sizeof(uint16_t));
  for (int i = 0; i < 3; i++) {
    hone_context_destroy(context[i]);
    hone_plan_destroy(plan[i]);
  }
  hone_weights_destroy(w);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

static void test_misuse(void **state) {
  (void)state;
  hone_engine *engine = engine_of(), *other = engine_of();
  hone_model *m = model_of(), *n = model_of();
  hone_weights *w = NULL;
  hone_plan *plan = NULL;
  assert_int_equal(hone_weights_create(engine, m, &w, NULL), HONE_OK);
  const hone_plan_options o = {.level = 2, .weights = w};
  assert_int_equal(hone_plan_create(engine, n, &o, &plan, NULL), HONE_ERROR_USAGE);
  assert_int_equal(hone_plan_create(other, m, &o, &plan, NULL), HONE_ERROR_USAGE);
  assert_null(plan);
  assert_int_equal(hone_weights_create(NULL, m, &w, NULL), HONE_ERROR_USAGE);
  hone_weights_destroy((hone_weights *)(uintptr_t)o.weights);
  hone_weights_destroy(NULL);
  assert_int_equal(hone_weights_bytes(NULL), 0);
  hone_model_release(m);
  hone_model_release(n);
  hone_engine_destroy(engine);
  hone_engine_destroy(other);
}

int main(int argc, char **argv) {
  if (argc > 1) device = argv[1];
  const struct CMUnitTest shared[] = {cmocka_unit_test(test_growing), cmocka_unit_test(test_mixed),
                                      cmocka_unit_test(test_halves), cmocka_unit_test(test_ways),
                                      cmocka_unit_test(test_misuse)};
  if (device) return cmocka_run_group_tests_name(device, shared, NULL, NULL);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_growing),     cmocka_unit_test(test_mixed),
                                     cmocka_unit_test(test_halves),      cmocka_unit_test(test_twins),
                                     cmocka_unit_test(test_coded_twins), cmocka_unit_test(test_misuse)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
