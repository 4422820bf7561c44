/* Opening the batch of a model that fixes it: answers of each sample stay, what cannot follow the batch is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_model *parse(const char *graph) {
  char text[1200];
  snprintf(text, sizeof text, "ir 8\nopset 17\n%s\n", graph);
  return net_parse("test", text);
}

/* A convolution, a Reshape with the batch in its shape, a product: of shape [3x2x4x4] and [3x2]. */
static const char net[] = "graph g(%x: f32[3x2x4x4], %more: f32[3x2]) -> (%y) {\n"
                          "  const %w: f32[4x2x3x3] = rand(1)\n"
                          "  const %v: f32[16x2] = rand(2)\n"
                          "  %c = Conv(%x, %w)\n"
                          "  %r = Reshape(%c, i64[2]{3, 16})\n"
                          "  %p = MatMul(%r, %v)\n"
                          "  %y = Add(%p, %more)\n"
                          "}";

static float *run(hone_model *m, int64_t batch, const float *x, const float *more, hone_tensor_desc *desc) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_error e = {0};
  hone_plan_options o = {.level = -1, .batch = batch};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  if (hone_plan_create(engine, m, &o, &plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  assert_int_equal(hone_context_create(plan, &context, NULL), HONE_OK);
  hone_tensor a = {*hone_plan_input_desc(plan, 0), (void *)(uintptr_t)x},
              b = {*hone_plan_input_desc(plan, 1), (void *)(uintptr_t)more};
  assert_int_equal(hone_context_run(context, (const hone_tensor *[]){&a, &b}, NULL, NULL), HONE_OK);
  const hone_tensor *out = hone_context_output(context, 0);
  *desc = out->desc;
  float *y = malloc((size_t)hone_desc_bytes(desc));
  assert_non_null(y);
  memcpy(y, out->data, (size_t)hone_desc_bytes(desc));
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  return y;
}

static void samples_keep_their_answers(void **state) {
  (void)state;
  enum { FIXED = 3, MORE = 7 };
  float x[MORE * 32], more[MORE * 2];
  for (int i = 0; i < MORE * 32; i++) x[i] = (float)((i * 37 + 11) % 101) / 50 - 1;
  for (int i = 0; i < MORE * 2; i++) more[i] = (float)i;
  hone_model *fixed = parse(net), *open = NULL;
  hone_error e = {0};
  if (hone_model_open_batch(fixed, &open, &e) != HONE_OK) fail_msg("%s", e.what);
  hone_tensor_desc d;
  float *want = run(fixed, 0, x, more, &d), *y = run(open, MORE, x, more, &d);
  assert_int_equal(d.rank, 2);
  assert_int_equal(d.dim[0], MORE);
  for (int i = 0; i < FIXED * 2; i++) assert_float_equal(y[i], want[i], 1e-5);
  assert_true(y[2 * MORE - 1] != y[1]);
  free(want);
  free(y);
  hone_model_release(open);
  hone_model_release(fixed);
}

static void refuse(const char *graph, hone_status status, const char *words) {
  hone_model *m = parse(graph), *open = NULL;
  hone_error e = {0};
  assert_int_equal(hone_model_open_batch(m, &open, &e), status);
  assert_null(open);
  if (!strstr(e.what, words)) fail_msg("'%s' lacks '%s'", e.what, words);
  hone_model_release(m);
}

static void what_cannot_follow_is_refused(void **state) {
  (void)state;
  /* The old batch is written into a node: the output would keep it, or shapes would not fit. */
  refuse("graph g(%x: f32[1x8]) -> (%y) {\n  %y = ReduceMean(%x) {axes=[0], keepdims=1}\n}",
         HONE_ERROR_UNSUPPORTED, "'y' does not follow the batch");
  refuse("graph g(%x: f32[2x8]) -> (%y) {\n  const %w: f32[2x8] = rand(1)\n  %y = Add(%x, %w)\n}",
         HONE_ERROR_INPUT, "");
  /* What begins with the batch's number, and not with the batch: [3 x batch, 4] made [batch, 12]. */
  refuse("graph g(%x: f32[1x3x4]) -> (%y) {\n  %r = Reshape(%x, i64[2]{-1, 4})\n"
         "  %y = Reshape(%r, i64[2]{1, -1})\n}",
         HONE_ERROR_UNSUPPORTED, "'y' does not begin with the batch");
  refuse("graph g(%x: f32[1x8], %z: f32[4x8]) -> (%y) {\n  %y = Add(%x, %z)\n}", HONE_ERROR_USAGE,
         "which is the batch");
  refuse("graph g(%x: f32[8]) -> (%y) {\n  %y = Relu(%x)\n}", HONE_ERROR_USAGE, "no input has two or more");
  /* Samples would read each other. */
  refuse("graph g(%x: f32[2x8]) -> (%y) {\n  %y = Softmax(%x) {axis=0}\n}", HONE_ERROR_UNSUPPORTED,
         "changes with the other samples");
  refuse(
      "graph g(%x: f32[2x8]) -> (%y) {\n  %m = ReduceMean(%x) {axes=[0], keepdims=1}\n  %y = Sub(%x, %m)\n}",
      HONE_ERROR_UNSUPPORTED, "changes with the other samples");
  hone_model *m = parse(net), *open = NULL, *again = NULL;
  assert_int_equal(hone_model_open_batch(m, &open, NULL), HONE_OK);
  assert_int_equal(hone_model_open_batch(open, &again, NULL), HONE_ERROR_USAGE); /* it is open */
  assert_int_equal(hone_model_open_batch(NULL, &again, NULL), HONE_ERROR_USAGE);
  assert_int_equal(hone_model_open_batch(m, NULL, NULL), HONE_ERROR_USAGE);
  hone_model_release(open);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples_keep_their_answers),
                                     cmocka_unit_test(what_cannot_follow_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
