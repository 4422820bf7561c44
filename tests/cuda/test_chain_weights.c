/* What chains of convolutions pack: weights as the plan means them, scaled by a normalisation or widened from
 * 16 bits, also where they are so large that they are made when they are packed. Read off a saved plan: the
 * driver computes nothing. */
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

/* 20480 weights of the 1x1: more than 64 KiB. */
#define NORMALISED(first)                                                                                    \
  "opset 17\ngraph g(%x: f32[256x128x14x14]) -> (%y) {\n" first                                              \
  "  const %w: f32[160x128x1x1] = full(1.0)\n  const %s: f32[160] = full(7.0)\n"                             \
  "  const %z: f32[160] = full(0.0)\n  const %v: f32[160] = full(1.0)\n"                                     \
  "  %r = Relu(%c)\n  %p = Conv(%r, %w)\n  %y = BatchNormalization(%p, %s, %z, %z, %v) {epsilon=0.0}\n}\n"
#define DEPTHWISE                                                                                            \
  "  const %d: f32[128x1x3x3] = full(0.5)\n  %c = Conv(%x, %d) {group=128, pads=[1, 1, 1, 1]}\n"
#define HALVES                                                                                               \
  "opset 17\ngraph g(%x: f16[256x128x14x14]) -> (%y) {\n"                                                    \
  "  const %d: f16[128x1x3x3] = full(0.5)\n  const %w: f16[160x128x1x1] = full(7.0)\n"                       \
  "  %c = Conv(%x, %d) {group=128, pads=[1, 1, 1, 1]}\n  %r = Relu(%c)\n  %y = Conv(%r, %w)\n}\n"

enum { WEIGHTS = 160 * 128, ONE = 0x3c00, SEVEN = 0x4700 }; /* in f16 */

static size_t count(const char *path, uint16_t value) {
  FILE *f = fopen(path, "rb");
  uint16_t half;
  size_t n = 0;
  assert_non_null(f);
  while (fread(&half, sizeof half, 1, f) == 1) n += half == value;
  fclose(f);
  return n;
}

/* A plan of the text in fp16, saved: how many of its numbers are 1 and 7. */
static void packed(const char *text, hone_chains chains, size_t *ones, size_t *sevens) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_error e = {0};
  char folder[512], path[600];
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "chain")));
  snprintf(path, sizeof path, "%s/plan.hone", folder);
  assert_int_equal(hone_engine_create(&(hone_engine_options){.device = "cuda"}, &engine, &e), HONE_OK);
  hn_model *m = net_parse("chain", text);
  const hone_plan_options o = {.level = 2, .precision = "fp16", .chains = chains};
  if (hone_plan_create(engine, m, &o, &plan, &e)) fail_msg("%s: %s", e.where, e.what);
  uint32_t made = 0;
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++) {
    hone_step_info step;
    assert_true(hone_plan_step(plan, i, &step));
    made += strcmp(step.op_type, "ConvChain") == 0;
  }
  assert_int_equal(made, chains == HONE_CHAINS_ALWAYS);
  if (hone_plan_save(plan, path, &e)) fail_msg("%s: %s", e.where, e.what);
  *ones = count(path, ONE), *sevens = count(path, SEVEN);
  hone_plan_destroy(plan);
  hone_model_release(m);
  hone_engine_destroy(engine);
  assert_int_equal(temporary_remove(folder), 0);
}

static void check(const char *text) {
  size_t ones, sevens;
  for (int chained = 0; chained < 2; chained++) {
    packed(text, chained ? HONE_CHAINS_ALWAYS : HONE_CHAINS_NEVER, &ones, &sevens);
    assert_true(sevens >= WEIGHTS && sevens < WEIGHTS + 1000);
    assert_true(ones < 1000);
  }
}

static void scales_of_normalisations_are_packed(void **state) {
  (void)state;
  check(NORMALISED(DEPTHWISE));
}

static void weights_of_16_bits_are_packed(void **state) {
  (void)state;
  check(HALVES);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scales_of_normalisations_are_packed),
                                     cmocka_unit_test(weights_of_16_bits_are_packed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
