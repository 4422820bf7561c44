/* f32 products of warpgroups: weights are packed as one number of tf32, or as two whose sum is the weight;
 * and what such products are not: convolutions whose only slice of depth is padding. Read off plans and saved
 * plans of a GPU that only records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "temporary.h"

#include <hone/hone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 0.1 is no number of tf32. */
#define MATRIX                                                                                               \
  "opset 17\ngraph g(%x: f32[4096x512]) -> (%y) {\n  const %w: f32[512x256] = full(0.1)\n"                   \
  "  %y = MatMul(%x, %w)\n}\n"
#define PADDED(front)                                                                                        \
  "opset 17\ngraph g(%x: f32[64x64x1x28x28]) -> (%y) {\n  const %w: f32[64x64x1x3x3] = full(1.0)\n"          \
  "  %y = Conv(%x, %w) {pads=[" front ", 1, 1, 0, 1, 1], strides=[2, 1, 1]}\n}\n"

enum { WEIGHTS = 512 * 256 };

static size_t count(const char *path, float value) {
  FILE *f = fopen(path, "rb");
  float at;
  size_t n = 0;
  assert_non_null(f);
  while (fread(&at, sizeof at, 1, f) == 1) n += at == value;
  fclose(f);
  return n;
}

/* The plan of a text; the tactic of its product. */
static hone_plan *plan_of(hone_engine *engine, hn_model *m, const char *precision, char tactic[64]) {
  hone_plan *plan = NULL;
  hone_error e = {0};
  if (hone_plan_create(engine, m, &(hone_plan_options){.level = 2, .precision = precision}, &plan, &e))
    fail_msg("%s: %s", e.where, e.what);
  tactic[0] = 0;
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++) {
    hone_step_info step;
    assert_true(hone_plan_step(plan, i, &step));
    if (!strcmp(step.op_type, "Conv") || !strcmp(step.op_type, "MatMul"))
      snprintf(tactic, 64, "%s", step.tactic);
  }
  return plan;
}

static hone_engine *engine_of(const char *tactics) {
  hone_engine *engine = NULL;
  hone_error e = {0};
  const hone_engine_options o = {.device = "cuda", .tuning = "off", .tactics = tactics};
  if (hone_engine_create(&o, &engine, &e)) fail_msg("%s: %s", e.where, e.what);
  return engine;
}

/* How many of the first and of the second parts a saved plan has. */
static void parts(const char *precision, size_t *first, size_t *second) {
  const float weight = 0.1f;
  uint32_t bits;
  memcpy(&bits, &weight, 4);
  bits = (bits + 0x1000u) & ~0x1fffu;
  float high, low;
  memcpy(&high, &bits, 4);
  const float left = weight - high; /* exact */
  memcpy(&bits, &left, 4);
  bits = (bits + 0x1000u) & ~0x1fffu;
  memcpy(&low, &bits, 4);
  const float lost = high + low - weight;
  assert_true(high != weight && lost <= weight * 0x1p-22f && -lost <= weight * 0x1p-22f);
  char folder[512], path[600], tactic[64];
  hone_error e = {0};
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "parts")));
  snprintf(path, sizeof path, "%s/plan.hone", folder);
  hone_engine *engine = engine_of("-cudnn*,-cublaslt*");
  hn_model *m = net_parse("parts", MATRIX);
  hone_plan *plan = plan_of(engine, m, precision, tactic);
  if (strncmp(tactic, "matmul_wgmma_parts_", 19)) fail_msg("%s", tactic);
  if (hone_plan_save(plan, path, &e)) fail_msg("%s: %s", e.where, e.what);
  *first = count(path, high), *second = count(path, low);
  hone_plan_destroy(plan);
  hone_model_release(m);
  hone_engine_destroy(engine);
  assert_int_equal(temporary_remove(folder), 0);
}

static void f32_has_two_parts(void **state) {
  (void)state;
  size_t first, second;
  parts("f32", &first, &second);
  assert_int_equal(first, WEIGHTS);
  assert_int_equal(second, WEIGHTS);
}

static void tf32_has_one(void **state) {
  (void)state;
  size_t first, second;
  parts("tf32", &first, &second);
  assert_int_equal(first, WEIGHTS);
  assert_int_equal(second, 0);
}

/* Whether warpgroup products take the convolution, in a precision. */
static bool taken(const char *text, const char *precision) {
  char tactic[64];
  hone_engine *engine = engine_of("-cudnn*,-cublaslt*");
  hn_model *m = net_parse("padded", text);
  hone_plan *plan = plan_of(engine, m, precision, tactic);
  const bool it = strstr(tactic, "wgmma") != NULL;
  hone_plan_destroy(plan);
  hone_model_release(m);
  hone_engine_destroy(engine);
  return it;
}

static void a_slice_of_padding_is_no_picture(void **state) {
  (void)state;
  static const char *const precision[] = {"f32", "fp16"};
  for (int i = 0; i < 2; i++) {
    assert_true(taken(PADDED("0"), precision[i]));
    assert_false(taken(PADDED("1"), precision[i]));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(f32_has_two_parts), cmocka_unit_test(tf32_has_one),
                                     cmocka_unit_test(a_slice_of_padding_is_no_picture)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
