/* Biases of products of codes: as i32 behind a MatMul, and rounded to i32 where the file has them in f32.
 * What runs on codes gives the reference's codes; scales are powers of two, so that the reference is exact.
 */
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

#define X " %d = DequantizeLinear(%x, f32 0.5, u8 120)\n"
#define W                                                                                                    \
  " %w = DequantizeLinear(i8[3x2]{1, -2, 127, 4, -128, 6}, f32[2]{0.125, 0.0625}, i8[2]{0, 0}) {axis=1}\n"   \
  " %m = MatMul(%d, %w)\n"
#define END " %r = QuantizeLinear(%a, f32 4, u8 99)\n"
#define UNITS "f32[2]{0.0625, 0.03125}"
#define TURNED " %w = DequantizeLinear(i8[2x3]{1, -2, 127, 4, -128, 6}, f32 0.0625, i8 0)\n"
#define FILTERS                                                                                              \
  " %w = DequantizeLinear(i8[2x3x1x1]{1, -2, 127, 4, -128, 6}, f32[2]{0.125, 0.0625}, i8[2]{0, 0}) "         \
  "{axis=0}\n"

typedef struct form {
  const char *inputs, *nodes, *step; /* the step that runs the product */
  bool whole;                        /* nothing but it computes */
} form;

static const form forms[] = {
    {"%x: u8[2x5x3]",
     X W " %b = DequantizeLinear(i32[2]{700, -3000}, " UNITS
         ", i32[2]{0, 0}) {axis=0}\n %a = Add(%m, %b)\n" END,
     "QLinearMatMul", true},
    {"%x: u8[2x5x3]",
     X W " %b = DequantizeLinear(i32[2]{700, -3000}, " UNITS
         ") {axis=0}\n %s = Add(%b, %m)\n %a = Relu(%s)\n" END,
     "MatMul", false}, /* 99 lets values below 0 pass: no code of the product cuts them off */
    {"%x: u8[2x5x3]",
     X W " %s = Add(f32[2]{43.75, -93.75}, %m)\n %a = Relu(%s)\n %r = QuantizeLinear(%a, f32 4, u8 0)\n",
     "QLinearMatMul", true},
    {"%x: u8[2x5x3]", X W " %a = Add(%m, f32[2]{43.75, -93.75})\n" END, "QLinearMatMul", true},
    {"%x: u8[2x5x3]", X W " %a = Add(%m, f32[1x1x2]{43.75, -93.75})\n" END, "QLinearMatMul", true},
    {"%x: u8[2x5x3]", X W " %a = Add(%m, f32[1]{43.75})\n" END, "MatMulIntegerToCodes",
     true}, /* not one number a column: added in f32 */
    {"%x: u8[1x2x3]", X W " %a = Add(%m, f32[1x2x2]{1, 2, 3, 4})\n" END, "MatMulIntegerToCodes", true},
    {"%x: u8[2x5x3]",
     X W " %b = DequantizeLinear(i32[2]{700, -3000}, f32[2]{0.5, 0.5}) {axis=0}\n %a = Add(%m, %b)\n" END,
     "MatMul", false}, /* not in units of the sums */
    {"%x: u8[2x5x3]", X W " %a = Add(%m, f32[2]{43.75, -93.75})\n %r = QuantizeLinear(%a, f32 2, u8 99)\n",
     "MatMulIntegerToCodes", true}, /* a unit is more than 1/64 of a step */
    {"%x: u8[2x5x3]", X W " %a = Add(%m, f32[2]{1e30, -93.75})\n" END, "MatMulIntegerToCodes", true},
    {"%x: u8[4x3]",
     X " %w = DequantizeLinear(i8[2x3]{1, -2, 127, 4, -128, 6}, f32 0.0625, i8 0)\n %a = Gemm(%d, %w, "
       "f32[2]{43.75, "
       "-93.75}) {transB=1}\n" END,
     "QLinearGemm", true},
    {"%x: u8[2x3]", X TURNED " %a = Gemm(%d, %w, f32[2x1]{43.75, -93.75}) {transB=1}\n" END, "Gemm",
     false}, /* one number a row */
    {"%x: u8[2x3]",
     X TURNED " %b = DequantizeLinear(i32[2x1]{700, -3000}, f32 0.03125)\n %a = Gemm(%d, %w, %b) "
              "{transB=1}\n" END,
     "Gemm", false},
    {"%x: u8[2x3]", X TURNED " %r = Gemm(%d, %w, f32[2x1]{43.75, -93.75}) {transB=1}\n", "Gemm", false},
    {"%x: u8[1x3x5x4]", X FILTERS " %a = Conv(%d, %w, f32[2]{43.75, -93.75})\n" END, "QLinearConv", true},
};

/* Runs a form; false: it fails. free() *out. */
static size_t answer(const form *f, bool reference, void **out, uint32_t *steps, bool *found) {
  char text[2000];
  hone_error error = {0};
  snprintf(text, sizeof text, "opset 17\ngraph g(%s) -> (%%r) {\n%s}\n", f->inputs, f->nodes);
  net_session s = net_open(net_parse("test", text), reference ? 0 : 2, reference, 1);
  hone_tensor x = {.desc = *hone_plan_input_desc(s.plan, 0)};
  const int64_t n = hone_desc_count(&x.desc);
  uint8_t *codes = malloc((size_t)n);
  assert_non_null(codes);
  for (int64_t i = 0; i < n; i++) codes[i] = (uint8_t)(i * 37 + 11);
  x.data = codes;
  if (hone_context_run(s.context, (const hone_tensor *const[]){&x}, NULL, &error) != HONE_OK)
    fail_msg("%s: %s", f->nodes, error.what);
  *steps = 0, *found = false;
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    hone_step_info info;
    assert_true(hone_plan_step(s.plan, i, &info));
    *steps += strcmp(info.op_type, "Reformat") != 0;
    *found |= strncmp(info.what, f->step, strlen(f->step)) == 0;
  }
  const hone_tensor *y = hone_context_output(s.context, 0);
  const size_t bytes = (size_t)hone_desc_bytes(&y->desc);
  *out = malloc(bytes);
  assert_non_null(*out);
  memcpy(*out, y->data, bytes);
  net_close(&s);
  free(codes);
  return bytes;
}

static void biases_of_codes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    void *want, *got;
    uint32_t steps;
    bool found;
    const size_t n = answer(&forms[i], true, &want, &steps, &found);
    assert_int_equal(answer(&forms[i], false, &got, &steps, &found), n);
    if (!found) fail_msg("no %s in form %zu: %s", forms[i].step, i, forms[i].nodes);
    if ((steps == 1) != forms[i].whole) fail_msg("%u steps in form %zu: %s", steps, i, forms[i].nodes);
    assert_memory_equal(got, want, n);
    free(want);
    free(got);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(biases_of_codes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
