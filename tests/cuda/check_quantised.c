/* check_quantised: networks that quantise while they run, on a GPU (an emulated one in CI) in fp16 and bf16,
 * against the references. Steps of 8 bits must come from values that were not rounded to the storage type:
 * codes are at most one level apart, results within what verify allows. Prints what is wrong; exit 1 when
 * something is. */
#include "base/mem.h"
#include "base/rng.h"
#include "model/ir/text.h"
#include "model/operators.h"

#include <hone/hone.h>
#include <hone/session.h>

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "ir 8\nopset 17\n"

static const struct {
  const char *name, *text;
  const char *tactic; /* that one step has at least; NULL: whatever there is */
} cases[] = {
    /* As quantize_dynamic writes it: sums beyond f16's range, and products of scales below it. */
    {"dynamic convolutions",
     HEAD "graph g(%x: f32[1x48x6x6]) -> (%y, %q, %r) {\n"
          "  const %w: u8[40x48x1x1] = rand(1, 100, 255)\n  const %v: u8[24x40x3x3] = rand(2, 90, 160)\n"
          "  const %b: f32[1x40x1x1] = rand(3)\n"
          "  %q, %s, %z = DynamicQuantizeLinear(%x)\n  %t = Mul(%s, f32 0.0000002)\n"
          "  %i = ConvInteger(%q, %w, %z, u8 0)\n  %f = Cast(%i) {to=1}\n  %m = Mul(%f, %t)\n"
          "  %n = Mul(%m, f32 1000)\n  %a = Add(%n, %b)\n  %c = Clip(%a, f32 -6, f32 6)\n"
          "  %r, %u, %o = DynamicQuantizeLinear(%c)\n  %k = Mul(%u, f32 0.0001)\n"
          "  %j = ConvInteger(%r, %v, %o, u8 128) {pads=[1, 1, 1, 1]}\n  %g = Cast(%j) {to=1}\n"
          "  %h = Mul(%g, %k)\n  %p = GlobalAveragePool(%h)\n  %y = Flatten(%p)\n}\n",
     NULL},
    /* The bias is added to the sums before they are scaled, and stands first. */
    {"sums behind a bias",
     HEAD "graph g(%x: f32[1x48x6x6]) -> (%y, %q) {\n"
          "  const %w: u8[40x48x1x1] = rand(1, 100, 255)\n  const %b: i32[1x40x1x1] = rand(2, -300, 300)\n"
          "  %q, %s, %z = DynamicQuantizeLinear(%x)\n  %i = ConvInteger(%q, %w, %z, u8 0)\n"
          "  %a = Add(%b, %i)\n  %f = Cast(%a) {to=1}\n  %m = Mul(%f, %s)\n  %y = Mul(%m, f32 0.001)\n}\n",
     NULL},
    /* The step is computed from the data by hand, and what is quantised is a convolution's result. */
    {"a computed scale",
     HEAD "graph g(%x: f32[1x16x8x8]) -> (%y, %q) {\n"
          "  const %w: f32[24x16x3x3] = rand(4, -0.0001, 0.0001)\n  const %v: f32[8x24x1x1] = rand(5)\n"
          "  %c = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n  %e = Abs(%c)\n  %m = ReduceMax(%e) {keepdims=0}\n"
          "  %s = Div(%m, f32 127)\n  %q = QuantizeLinear(%c, %s, i8 0)\n"
          "  %d = DequantizeLinear(%q, %s, i8 0)\n  %g = Mul(%d, f32 1000)\n  %y = Conv(%g, %v)\n}\n",
     NULL},
    /* Fixed steps, too small for f16. */
    {"fixed scales",
     HEAD "graph g(%x: f32[4x64]) -> (%y, %q) {\n"
          "  const %w: f32[64x32] = rand(6)\n  %a = Mul(%x, f32 0.000027)\n"
          "  %q = QuantizeLinear(%a, f32 0.00000027, u8 120)\n"
          "  %d = DequantizeLinear(%q, f32 0.00000027, u8 120)\n  %g = Mul(%d, f32 30000)\n"
          "  %y = MatMul(%g, %w)\n}\n",
     NULL},
    /* Rows of whole vectors and of none, both ends codes; one end; codes that others read, too. */
    {"norms between codes",
     HEAD
     "graph g(%x: f32[6x64]) -> (%y, %q, %n) {\n"
     "  const %s: f32[64] = rand(7, 0.5, 1.5)\n  const %b: f32[64] = rand(8)\n  const %w: f32[64x40] = "
     "rand(9)\n"
     "  const %t: f32[33] = rand(10, 0.5, 1.5)\n  %i = LayerNormalization(%x, %s)\n"
     "  %c = QuantizeLinear(%i, f32 0.02, i8 3)\n  %d = DequantizeLinear(%c, f32 0.02, i8 3)\n"
     "  %l = LayerNormalization(%d, %s, %b) {epsilon=0.01}\n  %q = QuantizeLinear(%l, f32 0.03, u8 128)\n"
     "  %e = DequantizeLinear(%q, f32 0.03, u8 128)\n  %m = LayerNormalization(%e, %s, %b)\n"
     "  %y = MatMul(%m, %w)\n  %a, %r = Split(%e, i64[2]{33, 31}) {axis=1}\n"
     "  %o = QuantizeLinear(%a, f32 0.05, u8 100)\n  %p = DequantizeLinear(%o, f32 0.05, u8 100)\n"
     "  %n = LayerNormalization(%p, %t)\n}\n",
     "codes_layer_norm"},
    /* Rows of codes that are read 16, 8 and 4 at once: many of them, of whole rounds of a warp or not. What
     * one level makes of the second norms is less than one of theirs. */
    {"many norms between codes",
     HEAD "graph g(%x: f32[1x512]) -> (%y, %z, %q) {\n"
          "  const %s: f32[512] = rand(19, 0.5, 1.5)\n  const %t: f32[256] = rand(20, 0.5, 1.5)\n"
          "  const %u: f32[192] = rand(21, 0.5, 1.5)\n  %c = QuantizeLinear(%x, f32 0.03, u8 120)\n"
          "  %k = Expand(%c, i64[2]{150, 512})\n  %d = DequantizeLinear(%k, f32 0.03, u8 120)\n"
          "  %l = LayerNormalization(%d, %s)\n  %q = QuantizeLinear(%l, f32 0.04, i8 9)\n"
          "  %a, %b, %f = Split(%q, i64[3]{256, 192, 64}) {axis=1}\n"
          "  %ad = DequantizeLinear(%a, f32 0.04, i8 9)\n  %bd = DequantizeLinear(%b, f32 0.04, i8 9)\n"
          "  %g = LayerNormalization(%ad, %t)\n  %y = QuantizeLinear(%g, f32 0.09, i8 3)\n"
          "  %h = LayerNormalization(%bd, %u)\n  %z = QuantizeLinear(%h, f32 0.09, u8 130)\n}\n",
     "codes_layer_norm"},
    /* Scales and shifts in codes, as quantisers write them: the norm stays one of floats. */
    {"a norm with its scale in codes",
     HEAD "graph g(%x: f32[6x64]) -> (%y, %q) {\n"
          "  const %s: i8[64] = rand(15, 20, 127)\n  const %b: i8[64] = rand(16, -127, 127)\n"
          "  const %w: f32[64x40] = rand(17)\n  const %t: f32[1] = {0.7}\n"
          "  %sf = DequantizeLinear(%s, f32 0.01)\n  %bf = DequantizeLinear(%b, f32 0.01)\n"
          "  %c = QuantizeLinear(%x, f32 0.02, i8 3)\n  %d = DequantizeLinear(%c, f32 0.02, i8 3)\n"
          "  %l = LayerNormalization(%d, %sf, %bf)\n  %q = QuantizeLinear(%l, f32 0.03, u8 128)\n"
          "  %e = DequantizeLinear(%q, f32 0.03, u8 128)\n  %m = LayerNormalization(%e, %t)\n"
          "  %y = MatMul(%m, %w)\n}\n",
     NULL},
    /* As tools write it: Q and DQ around every Reshape and Transpose between products and their attention. */
    {"attention behind products of codes",
     HEAD "graph g(%x: f32[1x8x32]) -> (%y) {\n"
          "  const %w: i8[32x32] = rand(11, -127, 127)\n  const %v: i8[32x32] = rand(12, -127, 127)\n"
          "  const %u: i8[32x32] = rand(13, -127, 127)\n  const %o: i8[32x32] = rand(14, -127, 127)\n"
          "  %wf = DequantizeLinear(%w, f32 0.004)\n  %vf = DequantizeLinear(%v, f32 0.004)\n"
          "  %uf = DequantizeLinear(%u, f32 0.004)\n  %of = DequantizeLinear(%o, f32 0.004)\n"
          "  %c = QuantizeLinear(%x, f32 0.03, u8 128)\n  %d = DequantizeLinear(%c, f32 0.03, u8 128)\n"
          "  %q0 = MatMul(%d, %wf)\n  %q1 = QuantizeLinear(%q0, f32 0.03, u8 128)\n"
          "  %q2 = DequantizeLinear(%q1, f32 0.03, u8 128)\n  %q3 = Reshape(%q2, i64[4]{1, 8, 2, 16})\n"
          "  %q4 = QuantizeLinear(%q3, f32 0.03, u8 128)\n  %q5 = DequantizeLinear(%q4, f32 0.03, u8 128)\n"
          "  %q6 = Transpose(%q5) {perm=[0, 2, 1, 3]}\n  %q7 = QuantizeLinear(%q6, f32 0.03, u8 128)\n"
          "  %q8 = DequantizeLinear(%q7, f32 0.03, u8 128)\n"
          "  %k0 = MatMul(%d, %vf)\n  %k1 = QuantizeLinear(%k0, f32 0.04, u8 120)\n"
          "  %k2 = DequantizeLinear(%k1, f32 0.04, u8 120)\n  %k3 = Reshape(%k2, i64[4]{1, 8, 2, 16})\n"
          "  %k6 = Transpose(%k3) {perm=[0, 2, 3, 1]}\n  %k7 = QuantizeLinear(%k6, f32 0.04, u8 120)\n"
          "  %k8 = DequantizeLinear(%k7, f32 0.04, u8 120)\n"
          "  %v0 = MatMul(%d, %uf)\n  %v1 = QuantizeLinear(%v0, f32 0.03, u8 128)\n"
          "  %v2 = DequantizeLinear(%v1, f32 0.03, u8 128)\n  %v3 = Reshape(%v2, i64[4]{1, 8, 2, 16})\n"
          "  %v6 = Transpose(%v3) {perm=[0, 2, 1, 3]}\n"
          "  %a = MatMul(%q8, %k8)\n  %b = Mul(%a, f32 0.25)\n  %s = Softmax(%b) {axis=-1}\n"
          "  %h = MatMul(%s, %v6)\n  %t = Transpose(%h) {perm=[0, 2, 1, 3]}\n"
          "  %r = Reshape(%t, i64[3]{1, 8, 32})\n  %z = QuantizeLinear(%r, f32 0.02, u8 128)\n"
          "  %f = DequantizeLinear(%z, f32 0.02, u8 128)\n  %y = MatMul(%f, %of)\n}\n",
     "attention*"},
};

static int failures;

static hone_plan *plan_of(const char *name, const char *text, hone_engine *engine, const char *precision,
                          bool reference) {
  hone_error e = {0};
  hn_model *m = NULL;
  hone_plan *plan = NULL;
  hone_plan_options o = {.level = 2, .precision = precision, .reference = reference};
  hone_status s = hn_model_parse(name, text, strlen(text), &m, &e);
  if (!s) s = hn_model_ready(m, &e);
  if (!s) s = hone_plan_create(engine, m, &o, &plan, &e);
  if (s) printf("FAIL %s: %s %s\n", name, e.what, e.where), failures++;
  hn_model_destroy(m);
  return plan;
}

static hone_context *run(const char *name, hone_plan *plan, const float *x) {
  hone_context *c = NULL;
  hone_error e = {0};
  const hone_tensor in = {plan ? *hone_plan_input_desc(plan, 0) : (hone_tensor_desc){0},
                          (void *)(uintptr_t)x};
  const hone_tensor *feed = &in;
  hone_status s = plan ? hone_context_create(plan, &c, &e) : HONE_ERROR_INTERNAL;
  if (!s) s = hone_context_run(c, &feed, NULL, &e);
  if (!s) return c;
  if (plan) printf("FAIL %s: %s %s\n", name, e.what, e.where), failures++;
  hone_context_destroy(c);
  return NULL;
}

static void compare_floats(const char *name, const char *precision, const hone_tensor *a,
                           const hone_tensor *b) {
  const float *p = a->data, *q = b->data;
  double worst = 0, low = p[0], high = p[0];
  for (int64_t i = 0, n = hone_desc_count(&a->desc); i < n; i++) {
    const double d = fabs((double)p[i] - (double)q[i]);
    if (!(d <= worst)) worst = d; /* NaN, too */
    low = fmin(low, (double)p[i]), high = fmax(high, (double)p[i]);
  }
  const double share = worst / (high - low), allowed = strcmp(precision, "fp16") == 0 ? 0x1p-8 : 0x1p-5;
  printf("%s, %s: %.3g of the range (%.3g allowed)\n", name, precision, share, allowed);
  if (!(share <= allowed)) printf("FAIL %s, %s\n", name, precision), failures++;
}

static void compare_codes(const char *name, const char *precision, const hone_tensor *a,
                          const hone_tensor *b) {
  int worst = 0;
  for (int64_t i = 0, n = hone_desc_count(&a->desc); i < n; i++) {
    const int d = a->desc.dtype == HONE_DTYPE_U8
                      ? ((const uint8_t *)a->data)[i] - ((const uint8_t *)b->data)[i]
                      : ((const int8_t *)a->data)[i] - ((const int8_t *)b->data)[i];
    if (abs(d) > worst) worst = abs(d);
  }
  if (worst > 1) printf("FAIL %s, %s: codes are %d levels apart\n", name, precision, worst), failures++;
}

/* The tactic is there. In front of attention no step moves codes or makes numbers of them, and one product
 * makes all three operands. */
static void expect_steps(const char *name, const hone_plan *plan, const char *tactic) {
  hone_step_info step;
  const bool attention = !strncmp(tactic, "attention", 9);
  bool any = false;
  int products = 0;
  for (uint32_t i = 0; hone_plan_step(plan, i, &step); i++) {
    any |= fnmatch(tactic, step.tactic, 0) == 0;
    if (attention && !any && (!strcmp(step.what, "Transpose") || !strcmp(step.what, "DequantizeLinear")))
      printf("FAIL %s: step %s is a %s\n", name, step.name, step.what), failures++;
    products += !any && !strcmp(step.what, "QLinearMatMul");
  }
  if (attention && products != 1) printf("FAIL %s: %d products\n", name, products), failures++;
  if (!any) printf("FAIL %s: no step by %s\n", name, tactic), failures++;
}

int main(void) {
  static const char *const precisions[] = {"fp16", "bf16"};
  hone_engine *cpu = NULL, *gpu = NULL;
  hone_error e = {0};
  float x[48 * 36];
  hn_rng rng = {7};
  if (hone_engine_create(NULL, &cpu, &e) ||
      hone_engine_create(&(hone_engine_options){.device = "cuda"}, &gpu, &e)) {
    printf("FAIL: %s\n", e.what);
    hone_engine_destroy(cpu);
    return 1;
  }
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = hn_rng_normal(&rng);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    hone_plan *truth = plan_of(cases[k].name, cases[k].text, cpu, "f32", true);
    hone_context *expected = run(cases[k].name, truth, x);
    for (size_t p = 0; p < 2 && expected; p++) {
      hone_plan *plan = plan_of(cases[k].name, cases[k].text, gpu, precisions[p], false);
      hone_context *got = run(cases[k].name, plan, x);
      if (plan && cases[k].tactic) expect_steps(cases[k].name, plan, cases[k].tactic);
      for (uint32_t o = 0; got && o < hone_plan_outputs(plan); o++) {
        const hone_tensor *a = hone_context_output(expected, o), *b = hone_context_output(got, o);
        if (a->desc.dtype == HONE_DTYPE_F32)
          compare_floats(cases[k].name, precisions[p], a, b);
        else
          compare_codes(cases[k].name, precisions[p], a, b);
      }
      hone_context_destroy(got);
      hone_plan_destroy(plan);
    }
    hone_context_destroy(expected);
    hone_plan_destroy(truth);
  }
  hone_engine_destroy(gpu);
  hone_engine_destroy(cpu);
  printf("%zu networks, %d failures\n", sizeof cases / sizeof *cases, failures);
  return failures != 0;
}
