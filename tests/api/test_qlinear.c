/* Operators of com.microsoft on codes: the reference, and the steps that a plan of level 2 makes of them,
 * give what the same function spelled out in ONNX's operators gives; a few results by hand. */
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

#define HEAD "opset 17\nopset \"com.microsoft\" 1\n"
#define A " %a = DequantizeLinear(%x, f32 0.05, u8 120)\n"

#define GATED "%r = com.microsoft::QLinearMul(%x, f32 0.05, u8 120, %y, f32 0.02, u8 7, f32 0.04, u8 9)"
#define GATED_FLOATS                                                                                         \
  " %b = DequantizeLinear(%y, f32 0.02, u8 7)\n %s = Mul(%a, %b)\n %r = QuantizeLinear(%s, f32 0.04, u8 9)"

typedef struct pair {
  const char *inputs, *codes, *floats; /* the graph's inputs, its nodes in both forms */
} pair;

static const pair pairs[] = {
    {"%x: u8[2x3x5], %y: u8[3x1]",
     "%r = com.microsoft::QLinearAdd(%x, f32 0.05, u8 120, %y, f32 0.02, u8 7, f32 0.06, u8 99)",
     A " %b = DequantizeLinear(%y, f32 0.02, u8 7)\n %s = Add(%a, %b)\n %r = QuantizeLinear(%s, f32 0.06, u8 "
       "99)"},
    {"%x: i8[2x7], %y: i8[2x7]",
     "%r = com.microsoft::QLinearMul(%x, f32 0.05, i8 -3, %y, f32 0.02, i8 7, f32 0.04, i8 9)",
     " %a = DequantizeLinear(%x, f32 0.05, i8 -3)\n %b = DequantizeLinear(%y, f32 0.02, i8 7)\n %s = Mul(%a, "
     "%b)\n"
     " %r = QuantizeLinear(%s, f32 0.04, i8 9)"},
    {"%x: u8[2x40x7x9], %y: u8[2x40x1x1]", GATED, A GATED_FLOATS},
    {"%x: u8[2x3x5x5], %y: u8[2x3x1x1]", GATED, A GATED_FLOATS},
    {"%x: u8[1x65x3], %y: u8[1x65x1]", GATED, A GATED_FLOATS},
    {"%x: u8[1x32x40x40], %y: u8[1x32x1x1]", GATED, A GATED_FLOATS},
    {"%x: i8[2x1x1x1], %y: i8[2x1x8x8]",
     "%r = com.microsoft::QLinearMul(%x, f32 0.25, i8 -3, %y, f32 0.5, i8 7, f32 1, i8 9)",
     " %a = DequantizeLinear(%x, f32 0.25, i8 -3)\n %b = DequantizeLinear(%y, f32 0.5, i8 7)\n"
     " %s = Mul(%a, %b)\n %r = QuantizeLinear(%s, f32 1, i8 9)"},
    {"%x: i8[2x1x1x1], %y: i8[2x24x8x8]",
     "%r = com.microsoft::QLinearMul(%y, f32 0.25, i8 -3, %x, f32 0.5, i8 7, f32 1, i8 9)",
     " %a = DequantizeLinear(%x, f32 0.5, i8 7)\n %b = DequantizeLinear(%y, f32 0.25, i8 -3)\n"
     " %s = Mul(%a, %b)\n %r = QuantizeLinear(%s, f32 1, i8 9)"},
    {"%x: u8[256]", "%r = com.microsoft::QLinearSigmoid(%x, f32 0.05, u8 120, f32 0.0039, u8 0)",
     A " %s = Sigmoid(%a)\n %r = QuantizeLinear(%s, f32 0.0039, u8 0)"},
    {"%x: u8[256]", "%r = com.microsoft::QLinearSigmoid(%x, f32 0.05, u8 120, f32 0.0039)",
     A " %s = Sigmoid(%a)\n %r = QuantizeLinear(%s, f32 0.0039, u8 0)"},
    {"%x: i8[4x64]", "%r = com.microsoft::QLinearLeakyRelu(%x, f32 0.05, _, f32 0.03) {alpha=0.2}",
     " %a = DequantizeLinear(%x, f32 0.05)\n %s = LeakyRelu(%a) {alpha=0.2}\n %r = QuantizeLinear(%s, f32 "
     "0.03, i8 0)"},
    {"%x: u8[2x3x9]",
     "%r = com.microsoft::QLinearSoftmax(%x, f32 0.05, u8 120, f32 0.0039, u8 0) {axis=-1, opset=13}",
     A " %s = Softmax(%a) {axis=-1}\n %r = QuantizeLinear(%s, f32 0.0039, u8 0)"},
    {"%x: u8[1x3x6x5]",
     "%r = com.microsoft::QLinearAveragePool(%x, f32 0.05, u8 120, f32 0.04, u8 99) {kernel_shape=[3, 2], "
     "pads=[1, 0, 1, 0],"
     " strides=[2, 1], count_include_pad=1}",
     A " %s = AveragePool(%a) {kernel_shape=[3, 2], pads=[1, 0, 1, 0], strides=[2, 1], count_include_pad=1}\n"
       " %r = QuantizeLinear(%s, f32 0.04, u8 99)"},
    {"%x: u8[2x9x6x5]",
     "%r = com.microsoft::QLinearGlobalAveragePool(%x, f32 0.05, u8 120, f32 0.013, u8 99)",
     A " %s = GlobalAveragePool(%a)\n %r = QuantizeLinear(%s, f32 0.013, u8 99)"},
    {"%x: u8[2x3x6x5]",
     "%r = com.microsoft::QLinearReduceMean(%x, f32 0.05, u8 120, f32 0.013, u8 99) {axes=[1, 3], "
     "keepdims=0}",
     A " %s = ReduceMean(%a) {axes=[1, 3], keepdims=0}\n %r = QuantizeLinear(%s, f32 0.013, u8 99)"},
    {"%x: u8[2x3x4], %y: u8[2x1x4]",
     "%r = com.microsoft::QLinearConcat(f32 0.07, u8 33, %x, f32 0.05, u8 120, %y, f32 0.1, u8 0) {axis=1}",
     A " %b = DequantizeLinear(%y, f32 0.1, u8 0)\n %s = Concat(%a, %b) {axis=1}\n %r = QuantizeLinear(%s, "
       "f32 0.07, u8 33)"},
    {"%x: u8[2x3], %y: u8[3]",
     "%c = Greater(%x, u8 90)\n %r = com.microsoft::QLinearWhere(%c, %x, f32 0.05, u8 120, %y, f32 0.1, u8 "
     "0, f32 0.07, u8 33)",
     "%c = Greater(%x, u8 90)\n" A " %b = DequantizeLinear(%y, f32 0.1, u8 0)\n %s = Where(%c, %a, %b)\n"
     " %r = QuantizeLinear(%s, f32 0.07, u8 33)"},
    {"%x: u8[3x4]",
     "%r = com.microsoft::QGemm(%x, f32 0.05, u8 120, i8[2x4]{1, -2, 3, 127, -128, 5, 6, 0}, f32[2]{0.01, "
     "0.02},"
     " i8[2]{0, 0}, i32[2]{700, -30}, f32 0.3, u8 99) {transB=1}",
     A " %w = DequantizeLinear(i8[2x4]{1, -2, 3, 127, -128, 5, 6, 0}, f32[2]{0.01, 0.02}, i8[2]{0, 0}) "
       "{axis=0}\n"
       " %c = DequantizeLinear(i32[2]{700, -30}, f32[2]{0.0005, 0.001}) {axis=0}\n %s = Gemm(%a, %w, %c) "
       "{transB=1}\n"
       " %r = QuantizeLinear(%s, f32 0.3, u8 99)"},
    {"%x: u8[4x3]",
     "%r = com.microsoft::QGemm(%x, f32 0.05, u8 120, u8[4x2]{1, 2, 3, 127, 128, 5, 6, 0}, f32 0.01, u8 9, "
     "_, f32 0.3, u8 99)"
     " {transA=1, alpha=0.5}",
     A " %w = DequantizeLinear(u8[4x2]{1, 2, 3, 127, 128, 5, 6, 0}, f32 0.01, u8 9)\n"
       " %s = Gemm(%a, %w) {transA=1, alpha=0.5}\n %r = QuantizeLinear(%s, f32 0.3, u8 99)"},
    {"%x: u8[2x3x4]",
     "%r = com.microsoft::MatMulIntegerToFloat(%x, i8[4x2]{1, 2, 3, 127, -128, 5, 6, 0}, f32 0.5, "
     "f32[2]{0.25, 2}, u8 120,"
     " i8[2]{0, 0}, f32[2]{1, -8})",
     " %i = MatMulInteger(%x, i8[4x2]{1, 2, 3, 127, -128, 5, 6, 0}, u8 120, i8[2]{0, 0})\n %f = Cast(%i) "
     "{to=1}\n"
     " %m = Mul(%f, f32[2]{0.125, 1})\n %r = Add(%m, f32[2]{1, -8})"},
    {"%x: u8[2x3x4]",
     "%f = Cast(%x) {to=1}\n %r = com.microsoft::DynamicQuantizeMatMul(%f, i8[4x2]{1, 2, 3, 127, -128, 5, 6, "
     "0}, f32 0.5)",
     "%f = Cast(%x) {to=1}\n %q, %s, %z = DynamicQuantizeLinear(%f)\n"
     " %i = MatMulInteger(%q, i8[4x2]{1, 2, 3, 127, -128, 5, 6, 0}, %z)\n %g = Cast(%i) {to=1}\n"
     " %t = Mul(%s, f32 0.5)\n %r = Mul(%g, %t)"},
};

static uint8_t *filled(const hone_tensor_desc *d, unsigned seed) {
  const int64_t n = hone_desc_count(d);
  uint8_t *data = malloc((size_t)n);
  assert_non_null(data);
  for (int64_t i = 0; i < n; i++)
    data[i] = n == 256 ? (uint8_t)i : (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 13);
  return data;
}

/* The output as bytes; free() it. */
static void *answer(const char *inputs, const char *nodes, int level, size_t *bytes) {
  char text[2000];
  hone_error error = {0};
  snprintf(text, sizeof text, HEAD "graph g(%s) -> (%%r) {\n %s\n}\n", inputs, nodes);
  net_session s = net_open(net_parse("test", text), level, level == 0, 2);
  hone_tensor in[2];
  const hone_tensor *const ins[] = {&in[0], &in[1]};
  const uint32_t n = hone_plan_inputs(s.plan);
  for (uint32_t i = 0; i < n; i++) {
    in[i].desc = *hone_plan_input_desc(s.plan, i);
    in[i].data = filled(&in[i].desc, 5 + i);
  }
  if (hone_context_run(s.context, ins, NULL, &error) != HONE_OK) fail_msg("%s: %s", nodes, error.what);
  const hone_tensor *out = hone_context_output(s.context, 0);
  *bytes = (size_t)hone_desc_bytes(&out->desc);
  void *copy = malloc(*bytes);
  assert_non_null(copy);
  memcpy(copy, out->data, *bytes);
  net_close(&s);
  for (uint32_t i = 0; i < n; i++) free(in[i].data);
  return copy;
}

static void both_forms_agree(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const pair *p = &pairs[i];
    size_t n, m;
    uint8_t *want = answer(p->inputs, p->floats, 0, &n);
    for (int level = 0; level <= 2; level++) {
      uint8_t *got = answer(p->inputs, p->codes, level, &m);
      assert_int_equal(m, n);
      for (size_t k = 0; k < n; k++)
        if (got[k] != want[k])
          fail_msg("level %d, byte %zu is %d, not %d: %s", level, k, got[k], want[k], p->codes);
      free(got);
    }
    free(want);
  }
}

/* 0.5 (3 - 1) + 0.25 (6 - 2) = 2; 2 / 0.125 + 10 = 26. Ties go to even: 0.5 (4 - 1) + 0 = 1.5; / 1 + 0. */
static void results_by_hand(void **state) {
  (void)state;
  static const struct {
    const char *node;
    uint8_t want;
  } one[] = {
      {"%r = com.microsoft::QLinearAdd(u8[1]{3}, f32 0.5, u8 1, u8[1]{6}, f32 0.25, u8 2, f32 0.125, u8 10)",
       26},
      {"%r = com.microsoft::QLinearAdd(u8[1]{4}, f32 0.5, u8 1, u8[1]{2}, f32 0.25, u8 2, f32 1, u8 0)", 2},
      {"%r = com.microsoft::QLinearAdd(u8[1]{6}, f32 0.5, u8 1, u8[1]{2}, f32 0.25, u8 2, f32 1, u8 0)", 2},
      {"%r = com.microsoft::QLinearMul(u8[1]{0}, f32 0.5, u8 4, u8[1]{6}, f32 0.5, u8 2, f32 1, u8 9)", 5},
      {"%r = com.microsoft::QLinearMul(u8[1]{255}, f32 0.5, u8 4, u8[1]{255}, f32 0.5, u8 2, f32 1, u8 9)",
       255},
      {"%r = com.microsoft::QGemm(u8[1x2]{3, 4}, f32 0.5, u8 1, u8[2x1]{5, 6}, f32 2, u8 2, i32[1]{-5}, f32 "
       "1, u8 0)",
       13},
  };
  for (size_t i = 0; i < sizeof one / sizeof *one; i++)
    for (int level = 0; level <= 2; level += 2) {
      size_t n;
      uint8_t *got = answer("%unused: u8[1]", one[i].node, level, &n);
      assert_int_equal(n, 1);
      if (*got != one[i].want) fail_msg("%s is %d at level %d", one[i].node, *got, level);
      free(got);
    }
}

/* A convolution's codes times a gate, and the largest of them: on codes, and with no copy between. */
static void gates_and_maxima_stay_codes(void **state) {
  (void)state;
  static const char text[] =
      HEAD "graph g(%x: u8[1x3x8x8], %g: u8[1x4x1x1]) -> (%r) {\n"
           " %c = QLinearConv(%x, f32 0.05, u8 120, i8[4x3x1x1]{1, -2, 3, 4, 5, 6, -7, 8, 9, 1, 2, 3}, f32 "
           "0.02, i8 0, f32 0.05, u8 99)\n"
           " %m = com.microsoft::QLinearMul(%g, f32 0.004, u8 0, %c, f32 0.05, u8 99, f32 0.03, u8 70)\n"
           " %p = MaxPool(%m) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}\n"
           " %r = MaxPool(%p) {kernel_shape=[2, 2], strides=[2, 2]}\n}\n";
  net_session s = net_open(net_parse("test", text), 2, false, 1);
  uint32_t gates = 0, maxima = 0, copies = 0;
  hone_step_info info;
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    assert_true(hone_plan_step(s.plan, i, &info));
    gates += !strcmp(info.tactic, "qlinear_mul");
    maxima += !strcmp(info.tactic, "qlinear_max_pool");
    copies += !strcmp(info.op_type, "Reformat");
  }
  net_close(&s);
  assert_int_equal(gates, 1);
  assert_int_equal(maxima, 2);
  assert_int_equal(copies, 2); /* the input and the output of the graph */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_forms_agree), cmocka_unit_test(results_by_hand),
                                     cmocka_unit_test(gates_and_maxima_stay_codes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
