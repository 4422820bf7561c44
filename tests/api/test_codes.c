/* Functions between DequantizeLinear and QuantizeLinear, and what moves elements there: plans keep to codes,
 * one step for each function, and give exactly what the references of the nodes give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <hone/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A " %a = DequantizeLinear(%x, f32 0.05, u8 120)\n"
#define B " %b = DequantizeLinear(%y, f32 0.031, u8 7)\n"
#define Q "%r = QuantizeLinear(%s, f32 0.07, u8 131)"
#define IMAGES "%x: u8[2x16x9x7], %y: u8[2x16x9x7]"
#define IMAGE "%x: u8[1x16x9x7]"
#define W A " %w = DequantizeLinear(i8[16x16x1x1]rand(3), f32 0.0113, i8 0)\n %c = Conv(%a, %w)\n"
#define CHANNELS "%x: u8[2x16x9x7], %y: u8[2x16x1x1]"

typedef struct net_case {
  const char *inputs, *nodes;
  const char *steps; /* anchors of the plan's steps, in order */
} net_case;

static const net_case cases[] = {
    {IMAGES, A B " %s = Sub(%a, %b)\n " Q, "Pointwise"},
    {IMAGES, A B " %s = Mul(%a, %b)\n " Q, "Pointwise"},
    {IMAGES, A B " %s = Max(%a, %b)\n " Q, "Pointwise"},
    {IMAGES, A B " %s = Min(%b, %a)\n " Q, "Pointwise"},
    {CHANNELS, A B " %s = Mul(%a, %b)\n " Q, "QLinearMul"},
    {CHANNELS, A B " %s = Add(%b, %a)\n " Q, "Pointwise"},
    {"%x: u8[3x5x11], %y: u8[11]", A B " %s = Mul(%a, %b)\n " Q, "Pointwise"},
    {"%x: u8[3x5x11], %y: u8[5x1]", A B " %s = Sub(%b, %a)\n " Q, "Pointwise"},
    {"%x: u8[2100], %y: u8[1]", A B " %s = Min(%a, %b)\n " Q, "Pointwise"},
    /* x sigmoid(x) with one DequantizeLinear for both, and a chain of functions with a constant */
    {"%x: u8[256]", A " %g = HardSigmoid(%a)\n %s = Mul(%a, %g)\n " Q, "CodeTable"},
    {"%x: u8[256]", A " %g = Mul(%a, f32 -0.4)\n %s = Relu(%g)\n " Q, "CodeTable"},
    {"%x: u8[4x64]", A " %g = Add(%a, f32[4x1]{1, -2, 0.5, 3})\n %s = Abs(%g)\n " Q, "Pointwise"},
    /* ties: every odd code lies between two of the result */
    {"%x: u8[256]", " %a = DequantizeLinear(%x, f32 0.5, u8 120)\n %r = QuantizeLinear(%a, f32 1, u8 60)",
     "CodeTable"},
    {"%x: i8[256]", " %a = DequantizeLinear(%x, f32 0.5, i8 -7)\n %r = QuantizeLinear(%a, f32 1, i8 5)",
     "CodeTable"},
    {"%x: i8[256]", " %a = DequantizeLinear(%x, f32 3)\n %r = QuantizeLinear(%a, f32 0.5, u8 128)",
     "CodeTable"},
    {"%x: u8[256]", A " %s = LeakyRelu(%a)\n " Q, "CodeTable"},
    {"%x: u8[2x3x4x4]", A " %s = PRelu(%a, f32[1x1x1]{0.3})\n " Q, "CodeTable"},
    /* a Sigmoid that is quantised by itself, as ONNX Runtime writes x sigmoid(x): one table, not three steps
     */
    {"%x: u8[256]",
     A " %g = Sigmoid(%a)\n %h = QuantizeLinear(%g, f32 0.004, u8 0)\n %i = DequantizeLinear(%h, f32 0.004, "
       "u8 0)\n"
       " %s = Mul(%a, %i)\n " Q,
     "CodeTable"},
    /* a table of a table is one table */
    {"%x: u8[256]",
     A " %g = Sigmoid(%a)\n %h = QuantizeLinear(%g, f32 0.004, u8 0)\n %i = DequantizeLinear(%h, f32 0.004, "
       "u8 0)\n"
       " %s = Identity(%i)\n " Q,
     "CodeTable"},
    /* two functions of one tensor; and of one tensor and one number, which is no table of its codes */
    {"%x: u8[4x64]", A " %g = Sigmoid(%a)\n %h = Tanh(%a)\n %i = Sub(%g, %h)\n %s = Mul(%i, %a)\n " Q,
     "CodeTable"},
    {"%x: u8[256], %y: u8[1]", A B " %g = Sigmoid(%a)\n %s = Mul(%g, %b)\n " Q, "Pointwise"},
    /* what activations cut off behind a convolution, within the range of the codes */
    {IMAGE, W " %s = Relu(%c)\n %r = QuantizeLinear(%s, f32 0.0317, i8 0)", "QLinearConvTable"},
    {IMAGE, W " %s = Relu(%c)\n " Q, "QLinearConvTable"},
    {IMAGE, W " %s = Clip(%c, f32 -0.83, f32 1.1)\n %r = QuantizeLinear(%s, f32 0.0317, i8 -5)",
     "QLinearConvTable"},
    /* moves */
    {"%x: u8[2x3x4x5]",
     A " %s = Transpose(%a) {perm=[0, 2, 3, 1]}\n %r = QuantizeLinear(%s, f32 0.05, u8 120)", "Transpose"},
    {"%x: u8[1x3x4x5]",
     A
     " %s = Resize(%a, _, f32[4]{1, 1, 2, 2}) {mode=\"nearest\"}\n %r = QuantizeLinear(%s, f32 0.05, u8 120)",
     "Resize"},
    {"%x: u8[2x3x4]", A " %s = Slice(%a, i64[1]{1}, i64[1]{3}, i64[1]{2})\n " Q, "Slice CodeTable"},
    {"%x: u8[2x3], %y: u8[2x5]",
     A B " %s = Concat(%a, %b) {axis=1}\n %r = QuantizeLinear(%s, f32 0.05, u8 120)", "CodeTable Concat"},
    {"%x: u8[2x3]", A " %s = Pad(%a, i64[4]{0, 1, 1, 0})\n %r = QuantizeLinear(%s, f32 0.05, u8 120)", "Pad"},
};

static uint8_t *filled(const hone_tensor_desc *d, unsigned seed) {
  const int64_t n = hone_desc_count(d);
  uint8_t *data = malloc((size_t)n);
  assert_non_null(data);
  for (int64_t i = 0; i < n; i++)
    data[i] = n == 256 ? (uint8_t)i : (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 13);
  return data;
}

/* The output as bytes; free() it. steps: room for the anchors of the plan's steps. */
static uint8_t *answer(const net_case *c, int level, size_t *bytes, char *steps, size_t room) {
  char text[2000];
  hone_error error = {0};
  snprintf(text, sizeof text, "opset 17\ngraph g(%s) -> (%%r) {\n %s\n}\n", c->inputs, c->nodes);
  net_session s = net_open(net_parse("test", text), level, level == 0, 2);
  hone_tensor in[2];
  const hone_tensor *const ins[] = {&in[0], &in[1]};
  const uint32_t n = hone_plan_inputs(s.plan);
  steps[0] = 0;
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    hone_step_info info;
    assert_true(hone_plan_step(s.plan, i, &info));
    if (info.role == HONE_STEP_REFORMAT) continue;
    const size_t at = strlen(steps);
    snprintf(steps + at, room - at, "%s%s", at ? " " : "", info.op_type);
  }
  for (uint32_t i = 0; i < n; i++) {
    in[i].desc = *hone_plan_input_desc(s.plan, i);
    in[i].data = filled(&in[i].desc, 5 + i);
  }
  if (hone_context_run(s.context, ins, NULL, &error) != HONE_OK) fail_msg("%s: %s", c->nodes, error.what);
  const hone_tensor *out = hone_context_output(s.context, 0);
  *bytes = (size_t)hone_desc_bytes(&out->desc);
  uint8_t *copy = malloc(*bytes);
  assert_non_null(copy);
  memcpy(copy, out->data, *bytes);
  net_close(&s);
  for (uint32_t i = 0; i < n; i++) free(in[i].data);
  return copy;
}

static void plans_keep_to_codes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const net_case *c = &cases[i];
    size_t n, m;
    char steps[256];
    uint8_t *want = answer(c, 0, &n, steps, sizeof steps), *got = answer(c, 2, &m, steps, sizeof steps);
    assert_int_equal(m, n);
    for (size_t k = 0; k < n; k++)
      if (got[k] != want[k]) fail_msg("byte %zu is %d, not %d: %s", k, got[k], want[k], c->nodes);
    if (strcmp(steps, c->steps) != 0) fail_msg("steps are '%s', not '%s': %s", steps, c->steps, c->nodes);
    free(got);
    free(want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(plans_keep_to_codes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
