/* Which operators become one step, and what that saves, counted by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <hone/hone.h>
#include <string.h>

static hone_fusions found(const char *text) {
  hn_model *m = net_parse("test", text);
  hone_engine *engine = NULL;
  hone_fusions f;
  hone_error e = {0};
  if (hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = ""}, &engine, &e) != HONE_OK ||
      hone_fusions_find(engine, m, NULL, &f, &e) != HONE_OK)
    fail_msg("%s: %s", e.what, text);
  hone_engine_destroy(engine);
  hone_model_release(m);
  return f;
}

/* 8 x 10 x 10 floats: written by the convolution and read by Relu, once each. */
static void test_done(void **state) {
  (void)state;
  hone_fusions f = found(
      "graph g(%x: f32[1x8x10x10]) -> (%y) {\n  %c = Conv(%x, f32[8x8x1x1]rand(1))\n  %y = Relu(%c)\n}\n");
  assert_int_equal(f.n, 1);
  assert_true(f.fusion[0].done);
  assert_int_equal(f.fusion[0].level, 1);
  assert_true(f.fusion[0].bytes_saved == 2 * 4 * 800);
  hone_fusions_free(&f);
  /* a sum with a residual is level 2; its other operand is still read */
  f = found(
      "graph g(%x: f32[1x8x10x10]) -> (%y) {\n  %c = Conv(%x, f32[8x8x1x1]rand(1))\n  %s = Add(%c, %x)\n"
      "  %y = Relu(%s)\n}\n");
  assert_int_equal(f.n, 1);
  assert_true(f.fusion[0].done);
  assert_int_equal(f.fusion[0].level, 2);
  assert_true(f.fusion[0].bytes_saved == 2 * 2 * 4 * 800);
  hone_fusions_free(&f);
}

/* A value that is read elsewhere, or is an output, must be written. */
static void test_refused(void **state) {
  (void)state;
  hone_fusions f = found("graph g(%x: f32[1x8x10x10]) -> (%y, %c) {\n  %c = Conv(%x, f32[8x8x1x1]rand(1))\n"
                         "  %y = Relu(%c)\n}\n");
  assert_int_equal(f.n, 1);
  assert_false(f.fusion[0].done);
  assert_int_equal(f.fusion[0].level, -1);
  assert_true(f.fusion[0].bytes_saved == 4 * 800);
  assert_non_null(strstr(f.fusion[0].reason, "an output of the model"));
  hone_fusions_free(&f);
  f = found(
      "graph g(%x: f32[1x8x10x10]) -> (%y, %z) {\n  %c = Conv(%x, f32[8x8x1x1]rand(1))\n  %y = Relu(%c)\n"
      "  %z = MaxPool(%c) {kernel_shape=[2, 2]}\n}\n");
  assert_int_equal(f.n, 1);
  assert_non_null(strstr(f.fusion[0].reason, "is read by 'MaxPool_3', too"));
  hone_fusions_free(&f);
}

/* Near misses of passes carry bytes, and the level that would take them. */
static void test_rewrites(void **state) {
  (void)state;
  static const char text[] =
      "graph g(%x: f32[4x8]) -> (%y) {\n  %a = Div(%x, f32[]{3})\n  %y = Relu(%a)\n}\n";
  hn_model *m = net_parse("test", text);
  hone_model *o = NULL;
  hone_rewrites r;
  hone_error e = {0};
  assert_int_equal(hone_model_optimize(m, &(hone_optimize_options){.level = 2}, &o, &r, &e), HONE_OK);
  bool seen = false;
  for (uint32_t i = 0; i < r.n; i++) {
    if (strcmp(r.record[i].pass, "div_to_mul") != 0) continue;
    seen = true;
    assert_false(r.record[i].hit);
    assert_int_equal(r.record[i].enable_level, 3);
  }
  assert_true(seen);
  hone_rewrites_free(&r);
  hone_model_release(o);
  hone_model_release(m);
}

static void test_usage(void **state) {
  (void)state;
  hone_error e = {0};
  hone_fusions f;
  assert_int_equal(hone_fusions_find(NULL, NULL, NULL, &f, &e), HONE_ERROR_USAGE);
  hone_fusions_free(NULL);
  assert_int_equal(hone_quantisation_of("Conv"), HONE_QUANTISATION_PRODUCT);
  assert_int_equal(hone_quantisation_of("Relu"), HONE_QUANTISATION_CODES);
  assert_int_equal(hone_quantisation_of("Gelu"), HONE_QUANTISATION_TABLE);
  assert_int_equal(hone_quantisation_of("Softmax"), HONE_QUANTISATION_FLOAT);
  assert_int_equal(hone_quantisation_of("LayerNormalization"), HONE_QUANTISATION_FLOAT);
  assert_int_equal(hone_quantisation_of("Reshape"), HONE_QUANTISATION_MOVES);
  assert_int_equal(hone_quantisation_of("NobodyKnows"), HONE_QUANTISATION_FLOAT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_done), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_rewrites), cmocka_unit_test(test_usage)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
