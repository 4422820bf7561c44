/* Each layer of a quantised network has one cause that keeps it from being faster, with what that costs;
 * times of the fixture are exact, so are these. */
#include "rules/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void layer(fixture *f, const char *name, const char *type, double ms, const char *dtype, double gflop,
                  double mb) {
  fixture_layer *l = fixture_add(f, name, type, ms);
  l->dtype = dtype;
  l->gflop = gflop;
  l->mb = mb;
  l->cin = l->cout = gflop > 0 ? 64 : 0;
}

/* 400 GOP/s in 8 bits, 100 GFLOP/s in f32, 20 GB/s, 85 % of it reachable, 5 us a step. */
static fixture network(void) {
  fixture f = fixture_healthy();
  f.count = 0;
  f.int8_gflops = 400;
  f.meta.precision = "int8";
  layer(&f, "front", "Conv", 1, "f32", 0.03, 1);
  layer(&f, "q_in", "QuantizeLinear", 0.2, "u8", 0, 1);
  layer(&f, "tiny", "QLinearConv", 0.2, "u8", 0.001, 0.01);
  layer(&f, "odd", "QLinearConv", 1, "u8", 0.1, 1);
  f.layers[f.count - 1].cin = 3;
  layer(&f, "bytes", "QLinearConv", 1, "u8", 0.01, 18);
  layer(&f, "slow", "QLinearConv", 1, "u8", 0.1, 1);
  layer(&f, "dq_soft", "DequantizeLinear", 0.3, "f32", 0, 1);
  layer(&f, "soft", "Softmax", 0.4, "f32", 0, 1);
  layer(&f, "relu", "Relu", 0.4, "f32", 0, 4);
  layer(&f, "dq_stuck", "DequantizeLinear", 0.1, "f32", 0, 1);
  layer(&f, "stuck", "Conv", 0.8, "f32", 0.034, 1);
  layer(&f, "q_stuck", "QuantizeLinear", 0.1, "u8", 0, 1);
  layer(&f, "order", "Reformat", 0.25, "u8", 0, 1);
  f.layers[f.count - 1].kind = HONE_SPAN_REFORMAT;
  f.layers[f.count - 1].reformat = true;
  layer(&f, "fine", "QLinearConv", 1, "u8", 0.338, 1);
  layer(&f, "dq_out", "DequantizeLinear", 0.1, "f32", 0, 1);
  layer(&f, "tail", "Gemm", 0.5, "f32", 0.034, 1);
  return f;
}

static const hone_part *part(const hone_finding *f, const char *name) {
  for (size_t i = 0; i < f->part_count; i++)
    if (strcmp(f->parts[i].name, name) == 0) return &f->parts[i];
  return NULL;
}

typedef struct expected {
  const char *name;
  double ms, saved_ms;
  const char *layers[6]; /* slowest first */
} expected;

/* Of `gflop` at the reachable part of 400 GOP/s, or of `mb` at that of 20 GB/s. */
static double at_roof(double gflop, double mb) { return fmax(gflop / 400 * 1e3, mb / 20) / 0.85 + 0.005; }

static void check(const hone_finding *f, const expected *want, size_t n) {
  assert_int_equal(f->part_count, n);
  for (size_t i = 0; i < n; i++) {
    const hone_part *p = part(f, want[i].name);
    if (!p) fail_msg("no part '%s'", want[i].name);
    if (fabs(p->ms - want[i].ms) > 1e-4 || fabs(p->saved_ms - want[i].saved_ms) > 1e-3)
      fail_msg("%s: %g ms, %g saved; %g, %g expected", p->name, p->ms, p->saved_ms, want[i].ms,
               want[i].saved_ms);
    assert_true(*p->label && *p->why && *p->advice);
    size_t k = 0;
    for (; k < 6 && want[i].layers[k]; k++) {
      assert_true(k < p->layer_count);
      assert_string_equal(p->layers[k], want[i].layers[k]);
    }
    assert_int_equal(p->layer_count, k);
  }
  for (size_t i = 1; i < n; i++) assert_true(f->parts[i - 1].saved_ms >= f->parts[i].saved_ms);
}

static void every_layer_has_one_cause(void **state) {
  (void)state;
  const expected want[] = {
      {"conversions", 0.8, 0.5, {"dq_soft", "q_in", "dq_stuck", "q_stuck", "dq_out"}},
      {"reformats", 0.25, 0.25, {"order"}},
      {"unfused", 0.8, 0.8 - at_roof(0.034, 0.25), {"stuck"}},
      {"islands", 0.8, 0.4 - at_roof(0, 1), {"soft", "relu"}},
      {"ends", 1.5, 1.5 - at_roof(0.03, 0.25) - at_roof(0.034, 0.25), {"front", "tail"}},
      {"memory", 1, 0, {"bytes"}},
      {"channels", 1, 1 - at_roof(0.1, 1), {"odd"}},
      {"small", 0.2, 0.2 - at_roof(0.001, 0.01), {"tiny"}},
      {"kernels", 1, 1 - at_roof(0.1, 1), {"slow"}},
  };
  fixture f = network();
  fixture_diagnose(&f);
  const hone_finding *found = fixture_finding(&f, "quantisation_without_gain");
  assert_non_null(found);
  check(found, want, sizeof want / sizeof *want);
  /* Nothing is counted twice: what is fine is the rest. */
  double ms = 0, all = 0;
  for (size_t i = 0; i < found->part_count; i++) ms += found->parts[i].ms;
  for (int i = 0; i < f.count; i++) all += f.layers[i].ms;
  assert_true(fabs(all - ms - 1) < 1e-4);
  assert_non_null(strstr(part(found, "channels")->why, "'odd' has 3 in and 64 out"));
  assert_non_null(strstr(part(found, "islands")->why, "Softmax, Relu"));
  fixture_free(&f);
}

static void without_units_for_bytes(void **state) {
  (void)state;
  fixture f = network();
  f.meta.isa = "avx2";
  fixture_diagnose(&f);
  const hone_finding *found = fixture_finding(&f, "quantisation_without_gain");
  assert_non_null(found);
  const hone_part *units = part(found, "units");
  assert_non_null(units);
  assert_int_equal(units->layer_count, 5);
  assert_non_null(strstr(units->why, "avx2"));
  /* A quarter of what f32 takes at its roof is what instructions for bytes would bring. */
  const double left = at_roof(0.001, 0) + 2 * at_roof(0.1, 0) + at_roof(0.01, 0) + at_roof(0.338, 0);
  const double kept = left > 0 && at_roof(0.338, 0) > 1 ? at_roof(0.338, 0) - 1 : 0;
  assert_true(fabs(units->saved_ms - (4.2 - left + kept)) < 1e-3);
  assert_null(part(found, "channels"));
  assert_null(part(found, "kernels"));
  bool device = false;
  for (size_t i = 0; i < found->command_count; i++) device |= strcmp(found->commands[i], "hone device") == 0;
  assert_true(device);
  fixture_free(&f);
}

/* A device's counters see that its tensor units rest; the others are busy. */
static void beside_tensor_units(void **state) {
  (void)state;
  fixture f = network();
  f.meta.backend = "cuda:0";
  f.meta.tool = "nsight_compute";
  int odd = 0, slow = 0;
  for (int i = 0; i < f.count; i++) {
    if (strcmp(f.layers[i].name, "odd") == 0) odd = i;
    if (strcmp(f.layers[i].name, "slow") == 0) slow = i;
  }
  f.layers[odd].reason = "channels are no multiple of 16";
  fixture_counter(&f, "tensor_pipe_pct", odd, 0.02);
  fixture_counter(&f, "tensor_pipe_pct", slow, 31);
  fixture_diagnose(&f);
  const hone_finding *found = fixture_finding(&f, "quantisation_without_gain");
  assert_non_null(found);
  const hone_part *units = part(found, "units");
  assert_non_null(units);
  assert_int_equal(units->layer_count, 1);
  assert_string_equal(units->layers[0], "odd");
  assert_non_null(strstr(units->why, "channels are no multiple of 16"));
  assert_true(fabs(units->saved_ms - (1 - at_roof(0.1, 0))) < 1e-3);
  fixture_free(&f);
}

/* With the float network beside it: which products did not gain. */
static void slower_than_in_float(void **state) {
  (void)state;
  fixture before = network(), f = network();
  for (int i = 0; i < before.count; i++) before.layers[i].dtype = "f32";
  for (int i = 0; i < before.count; i++)
    if (strcmp(before.layers[i].name, "odd") == 0)
      before.layers[i].ms = 0.7;
    else if (strcmp(before.layers[i].name, "slow") == 0)
      before.layers[i].ms = 0.9;
  fixture_diagnose(&before);
  f.float_profile = before.profile;
  fixture_diagnose(&f);
  const hone_finding *found = fixture_finding(&f, "quantisation_without_gain");
  assert_non_null(found);
  assert_true(fixture_evidence(found, "products slower than in float") == 2);
  assert_true(fabs(fixture_evidence(found, "what they lose") - 0.4) < 1e-3);
  assert_true(fabs(fixture_evidence(found, "the worst of them") - 0.3) < 1e-3);
  fixture_free(&f);
  fixture_free(&before);
}

/* Records without roofs tell the time of every cause, and what would go only of conversions. */
static void without_roofs(void **state) {
  (void)state;
  for (int zh = 0; zh < 2; zh++) {
    fixture f = network();
    f.no_roofs = true;
    f.int8_gflops = 0;
    f.meta.tool = "onnxruntime";
    f.language = zh ? HONE_LANGUAGE_ZH : HONE_LANGUAGE_EN;
    fixture_diagnose(&f);
    const hone_finding *found = fixture_finding(&f, "quantisation_without_gain");
    assert_non_null(found);
    assert_true(fabs(part(found, "conversions")->saved_ms - 0.5) < 1e-4);
    assert_true(fabs(part(found, "unfused")->ms - 0.8) < 1e-4);
    assert_true(isnan(part(found, "unfused")->saved_ms));
    assert_null(part(found, "kernels")); /* who knows how fast it could be */
    assert_true(zh == (strstr(part(found, "conversions")->label, "单独成步") != NULL));
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layer_has_one_cause),
      cmocka_unit_test(without_units_for_bytes),
      cmocka_unit_test(beside_tensor_units),
      cmocka_unit_test(slower_than_in_float),
      cmocka_unit_test(without_roofs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
