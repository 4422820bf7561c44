/* Concat in plans of a GPU (an emulated one will do): a constant beside values that are stored narrow, more
 * operands than a launch takes, and Concats that gather the same values again and again. No step falls back
 * to the host, and the answers are the CPU's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/api.h"
#include "net.h"

#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int concats; /* of the last plan of a GPU */

static float *run(hn_model *m, const char *device, const char *precision, const float *x, int64_t *n) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *c = NULL;
  hone_error e = {0};
  const hone_engine_options o = {
      .device = device, .threads = 2, .tuning = "off", .tactics = "-cu*,-*_wgmma*"};
  assert_int_equal(hone_engine_create(&o, &engine, &e), HONE_OK);
  if (hone_plan_create(engine, m, &(hone_plan_options){.level = 2, .precision = precision}, &plan, &e))
    fail_msg("%s: %s", e.where, e.what);
  const hn_plan *p = hn_api_plan(plan);
  concats = 0;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    concats += strcmp(s->desc.anchor, "Concat") == 0;
    if (strcmp(device, "cuda") == 0 && hn_step_falls_back(s))
      fail_msg("%s is on the host: %s", s->desc.name, s->n_refused ? s->refused[0].text : "no tactic");
  }
  assert_int_equal(hone_context_create(plan, &c, &e), HONE_OK);
  const hone_tensor in = {*hone_plan_input_desc(plan, 0), (void *)(uintptr_t)x};
  const hone_tensor *list[] = {&in};
  if (hone_context_run(c, list, NULL, &e)) fail_msg("%s: %s", e.where, e.what);
  const hone_tensor *y = hone_context_output(c, 0);
  *n = hone_desc_count(&y->desc);
  float *copy = malloc((size_t)*n * sizeof *copy);
  memcpy(copy, y->data, (size_t)*n * sizeof *copy);
  hone_context_destroy(c);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  return copy;
}

static void check(const char *text) {
  static float x[4096];
  unsigned seed = 3;
  for (int i = 0; i < 4096; i++)
    x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
  static const char *const precisions[] = {"f32", "fp16", "bf16"};
  for (int k = 0; k < 3; k++) {
    int64_t n, as_many;
    hn_model *a = net_parse("concat", text), *b = net_parse("concat", text);
    float *want = run(a, "cpu", "f32", x, &n), *got = run(b, "cuda", precisions[k], x, &as_many);
    float range = 0, most = 0;
    assert_int_equal(n, as_many);
    for (int64_t i = 0; i < n; i++) {
      range = fmaxf(range, fabsf(want[i]));
      most = fmaxf(most, isnan(got[i]) ? INFINITY : fabsf(got[i] - want[i]));
    }
    assert_true(range > 0.1f && most <= range * (k == 0 ? 1e-5f : k == 1 ? 4e-3f : 3e-2f));
    free(want);
    free(got);
    hone_model_release(a);
    hone_model_release(b);
  }
}

/* A token of constants before tokens that are computed. */
static void a_constant_is_stored_as_values_are(void **state) {
  (void)state;
  check("graph g(%x: f32[1x3x4]) -> (%y) {\n"
        "  %a = Relu(%x)\n"
        "  %c = Concat(f32[1x1x4]{0.25, -1.5, 3, 0.125}, %a) {axis=1}\n"
        "  %y = Relu(%c)\n}\n");
}

/* Channels-last, where the constant has to be turned as well. */
static void a_constant_in_another_layout(void **state) {
  (void)state;
  check("graph g(%x: f32[1x3x4x4]) -> (%y) {\n"
        "  %a = MaxPool(%x) {kernel_shape=[2, 2], strides=[2, 2]}\n"
        "  %c = Concat(%a, f32[1x2x2x2]{1, -2, 3, -4, 5, 6, -7, 8}) {axis=1}\n"
        "  %y = MaxPool(%c) {kernel_shape=[1, 2]}\n}\n");
}

enum { PARTS = 40 };
static void many_operands(void **state) {
  (void)state;
  char text[8192] = "graph g(%x: f32[2x3x5]) -> (%y) {\n  %a0 = Relu(%x)\n", list[1024] = "%a0";
  for (int i = 1; i < PARTS; i++) {
    sprintf(text + strlen(text), "  %%a%d = LeakyRelu(%%a%d) {alpha=0.5}\n  %%b%d = Neg(%%a%d)\n", i, i - 1,
            i, i);
    sprintf(list + strlen(list), ", %%b%d", i);
  }
  sprintf(text + strlen(text), "  %%c = Concat(%s) {axis=1}\n  %%y = Neg(%%c)\n}\n", list);
  check(text);
}

/* Every layer of DenseNet reads all maps so far: they lie in the memory of the last Concat, and the ones
 * before it are places there. %q, whose maps come in another order, is a copy. */
#define LAYER(n, all, c)                                                                                     \
  "  %c" n " = Concat(" all ") {axis=1}\n  %m" n " = Mul(%c" n ", f32[1x" c "x1x1] rand(" n "))\n"           \
  "  %r" n " = Relu(%m" n ")\n  %f" n " = Conv(%r" n ", f32[8x" c "x3x3] rand(5" n                           \
  ")) {pads=[1, 1, 1, 1]}\n"
#define DENSE(out)                                                                                           \
  "graph g(%x: f32[2x16x6x5]) -> " out " {\n"                                                                \
  "  %f0 = Conv(%x, f32[16x16x1x1] rand(1))\n  %r0 = Relu(%f0)\n"                                            \
  "  %f1 = Conv(%r0, f32[8x16x3x3] rand(2)) {pads=[1, 1, 1, 1]}\n  %q = Concat(%f1, %f0) {axis=1}\n" LAYER(  \
      "2", "%f0, %f1", "24") LAYER("3", "%f0, %f1, %f2", "32")                                               \
      LAYER("4", "%f0, %f1, %f2, %f3",                                                                       \
            "40") "  %c5 = Concat(%f0, %f1, %f2, %f3, %f4) {axis=1}\n  %r5 = Relu(%c5)\n"                    \
                  "  %z = Conv(%r5, f32[16x48x1x1] rand(9))\n"

static void blocks_of_maps_are_not_copied(void **state) {
  (void)state;
  check(DENSE("(%y)") "  %y = Neg(%z)\n}\n");
  assert_int_equal(concats, 0);
  check(DENSE("(%y)") "  %s = Conv(%q, f32[16x24x1x1] rand(8))\n  %y = Add(%z, %s)\n}\n");
  assert_int_equal(concats, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_constant_is_stored_as_values_are), cmocka_unit_test(a_constant_in_another_layout),
      cmocka_unit_test(many_operands), cmocka_unit_test(blocks_of_maps_are_not_copied)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
