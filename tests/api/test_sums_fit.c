/* Sums of codes in floats are exact as long as none reaches 2^24. Tactics that compute so take a step by what
 * its weights are, not by what they might be, and refuse it for one channel alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "api/api.h"
#include "optimize/plan/plan.h"
#include "optimize/step/choose.h"

#include <string.h>

enum { K = 600, CHANNELS = 1110 }; /* 600 x 128 x 255 is beyond, 600 x 100 x 255 is not */

static hn_value *scalar(hn_model *m, hone_dtype type, float scale, int code) {
  const uint8_t byte = (uint8_t)code;
  return net_constant(m, type, 0, NULL, type == HONE_DTYPE_F32 ? (const void *)&scale : &byte);
}

/* A product of codes with these weights, k x channels, or a convolution: channels x k. bias: of the first
 * channel; 0: none. */
static net_session open_product(bool conv, bool is_signed, const uint8_t *w, int32_t bias) {
  hn_model *m = net_begin();
  const int64_t rows[] = {4, K}, image[] = {1, K, 2, 2}, wide[] = {K, CHANNELS},
                filters[] = {CHANNELS, K, 1, 1}, channels = CHANNELS;
  const hone_dtype type = is_signed ? HONE_DTYPE_I8 : HONE_DTYPE_U8;
  hn_value *x = conv ? net_input(m, "x", HONE_DTYPE_U8, 4, image) : net_input(m, "x", HONE_DTYPE_U8, 2, rows);
  hn_value *in[9] = {x,
                     scalar(m, HONE_DTYPE_F32, 0.02f, 0),
                     scalar(m, HONE_DTYPE_U8, 0, 0),
                     conv ? net_constant(m, type, 4, filters, w) : net_constant(m, type, 2, wide, w),
                     scalar(m, HONE_DTYPE_F32, 0.01f, 0),
                     scalar(m, type, 0, is_signed ? 0 : 128),
                     scalar(m, HONE_DTYPE_F32, 30, 0),
                     scalar(m, HONE_DTYPE_U8, 0, 9)};
  int32_t biases[CHANNELS] = {bias};
  if (bias) in[8] = net_constant(m, HONE_DTYPE_I32, 1, &channels, biases);
  net_finish(m, net_op(m, conv ? "QLinearConv" : "QLinearMatMul", in, bias ? 9 : 8));
  return net_open(m, 2, false, 1);
}

static bool takes(bool conv, bool is_signed, const uint8_t *w, int32_t bias) {
  net_session s = open_product(conv, is_signed, w, bias);
  const hn_plan *p = hn_api_plan(s.plan);
  const char *name = conv ? "qlinear_conv" : "qlinear_matmul";
  bool found = false, asked = false;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *step = &p->steps.ptr[i];
    if (!step->desc.anchor || strncmp(step->desc.anchor, "QLinear", 7) != 0) continue;
    hn_candidate list[HN_MAX_CANDIDATES];
    const uint32_t n = hn_accepting_tactics(p, &step->desc, list, NULL);
    asked = true;
    for (uint32_t k = 0; k < n; k++) found |= strcmp(list[k].tactic->name, name) == 0;
  }
  assert_true(asked);
  net_close(&s);
  return found;
}

static uint8_t w[K * CHANNELS];

static void set_channel(bool conv, int c, int from, int to, int code) {
  for (int k = from; k < to; k++) w[conv ? c * K + k : k * CHANNELS + c] = (uint8_t)code;
}

static void check(bool conv, bool is_signed) {
  static const int channels[] = {0, 63, 64, 127, 1023, 1024, 1088, CHANNELS - 1};
  const int zero = is_signed ? 0 : 128;
  for (int c = 0; c < CHANNELS; c++) set_channel(conv, c, 0, K, zero + 100);
  assert_true(takes(conv, is_signed, w, 0));
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
    const int c = channels[i];
    for (int sign = -1; sign <= 1; sign += 2) { /* 600 x 109 x 255 is 0.6 % below, x 110 is beyond */
      set_channel(conv, c, 0, K, zero + sign * 109);
      assert_true(takes(conv, is_signed, w, 0));
      set_channel(conv, c, 0, K, zero + sign * 110);
      assert_false(takes(conv, is_signed, w, 0));
    }
    set_channel(conv, c, 0, K, zero + 127);
    assert_false(takes(conv, is_signed, w, 0));
    set_channel(conv, c, 0, K, zero - 127);
    assert_false(takes(conv, is_signed, w, 0));
    /* What cancels out at the end: the sums of one sign say how far it may come on the way. */
    set_channel(conv, c, K / 2, K, zero + 127);
    assert_true(takes(conv, is_signed, w, 0));
    set_channel(conv, c, 0, K, zero + 100);
  }
  if (conv) assert_false(takes(conv, is_signed, w, 2000000));
}

static void products_are_counted(void **state) {
  (void)state;
  check(false, true);
  check(false, false);
}

static void convolutions_are_counted(void **state) {
  (void)state;
  check(true, true);
  check(true, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_counted),
      cmocka_unit_test(convolutions_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
