/* Inputs as they come: the same answers as when the caller converts and normalises, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/half.h"
#include "net.h"

#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A convolution whose border shows what lies beyond the picture, and what follows it. */
#define NCHW                                                                                                 \
  "graph g(%x: f32[2x3x9x11]) -> (%y) {\n"                                                                   \
  "  const %w: f32[8x3x3x3] = rand(1)\n  const %b: f32[8] = rand(2)\n"                                       \
  "  %c = Conv(%x, %w, %b) {pads=[1,1,1,1]}\n  %r = Relu(%c)\n  %y = GlobalAveragePool(%r)\n}\n"
#define NHWC                                                                                                 \
  "graph g(%x: f32[2x9x11x3]) -> (%y) {\n"                                                                   \
  "  const %w: f32[8x3x3x3] = rand(1)\n  const %b: f32[8] = rand(2)\n"                                       \
  "  %t = Transpose(%x) {perm=[0,3,1,2]}\n"                                                                  \
  "  %c = Conv(%t, %w, %b) {pads=[1,1,1,1]}\n  %r = Relu(%c)\n  %y = GlobalAveragePool(%r)\n}\n"
enum { N = 2, C = 3, H = 9, W = 11, COUNT = N * C * H * W };

static const hone_preprocess given = {.normalise = true,
                                      .scale = 1.0f / 127,
                                      .mean = {0.5f, 0.25f, 1},
                                      .std = {0.5f, 2, 0.25f}},
                             turned = {.normalise = true,
                                       .bgr = true,
                                       .scale = 1.0f / 255,
                                       .mean = {0.1f, 0.2f, 0.3f},
                                       .std = {1, 1, 1}},
                             plain = {.normalise = true, .scale = 1.0f / 255, .std = {1, 1, 1}}, usual = {0};

static uint8_t byte_at(int n, int c, int h, int w) {
  return (uint8_t)((n * 89 + c * 57 + h * 31 + w * 17 + h * w * 5) % 256);
}

/* What the caller would have made of a byte. */
static float value_of(const hone_preprocess *o, int n, int c, int h, int w) {
  static const float mean[] = {0.485f, 0.456f, 0.406f}, std[] = {0.229f, 0.224f, 0.225f};
  const float v = byte_at(n, o->bgr ? 2 - c : c, h, w);
  return o->normalise ? (v * o->scale - o->mean[c]) / o->std[c] : (v / 255 - mean[c]) / std[c];
}

static size_t at(bool last, int n, int c, int h, int w) {
  return (size_t)(last ? ((n * H + h) * W + w) * C + c : ((n * C + c) * H + h) * W + w);
}

/* rides: what converts bytes is part of the step that normalises them. */
static void run(hone_model *m, const void *x, float *y, bool rides) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_error e = {0};
  const hone_engine_options options = {.threads = 2};
  assert_int_equal(hone_engine_create(&options, &engine, &e), HONE_OK);
  if (hone_plan_create(engine, m, &(hone_plan_options){.level = 2}, &plan, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  assert_string_equal(hone_plan_input_name(plan, 0), "x");
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++) {
    hone_step_info s;
    assert_true(hone_plan_step(plan, i, &s));
    if (strcmp(s.tactic, "ref") == 0) fail_msg("%s (%s) is left to the references", s.name, s.what);
    if (strcmp(s.op_type, "Cast") == 0 && rides) fail_msg("%s is a step of its own", s.name);
  }
  assert_int_equal(hone_context_create(plan, &context, NULL), HONE_OK);
  const hone_tensor in = {*hone_plan_input_desc(plan, 0), (void *)(uintptr_t)x};
  if (hone_context_run(context, (const hone_tensor *[]){&in}, NULL, &e) != HONE_OK) fail_msg("%s", e.what);
  const hone_tensor *out = hone_context_output(context, 0);
  assert_int_equal(hone_desc_bytes(&out->desc), N * 8 * sizeof(float));
  memcpy(y, out->data, N * 8 * sizeof(float));
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
}

static void compare(const float *a, const float *b, double bound) {
  double most = 0, range = 0;
  for (int i = 0; i < N * 8; i++) {
    most = fmax(most, fabs((double)a[i] - (double)b[i]));
    range = fmax(range, fabs((double)b[i]));
  }
  if (!(most <= bound * range)) fail_msg("differs by %g of %g", most, range);
}

static hone_model *take(hone_model *m, const hone_arriving *o) {
  hone_model *out = NULL;
  hone_error e = {0};
  if (hone_model_take(m, NULL, o, &out, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return out;
}

/* Bytes in both layouts, into models of both layouts. */
static void test_bytes(void **state) {
  (void)state;
  static const hone_preprocess *const by[] = {&given, &turned, &plain, &usual};
  static float x[COUNT], want[N * 8], got[N * 8];
  static uint8_t u[COUNT];
  for (int inner = 0; inner < 2; inner++)
    for (size_t b = 0; b < sizeof by / sizeof *by; b++) {
      hone_model *m = net_parse("take", inner ? NHWC : NCHW);
      for (int i = 0; i < COUNT; i++) {
        const int w = i % W, h = i / W % H, c = i / W / H % C, n = i / W / H / C;
        x[at(inner, n, c, h, w)] = value_of(by[b], n, c, h, w);
      }
      run(m, x, want, false);
      for (hone_pixels pixels = HONE_PIXELS_AUTO; pixels <= HONE_PIXELS_NHWC; pixels++) {
        const bool last = pixels == HONE_PIXELS_AUTO ? inner : pixels == HONE_PIXELS_NHWC;
        hone_model *bytes = take(m, &(hone_arriving){.pixels = pixels, .preprocess = by[b]});
        hone_port port;
        assert_true(hone_model_input(bytes, 0, &port));
        assert_int_equal(port.desc.dtype, HONE_DTYPE_U8);
        assert_int_equal(port.desc.dim[last ? 3 : 1], C);
        for (int i = 0; i < COUNT; i++) {
          const int w = i % W, h = i / W % H, c = i / W / H % C, n = i / W / H / C;
          u[at(last, n, c, h, w)] = byte_at(n, c, h, w);
        }
        run(bytes, u, got, !by[b]->bgr);
        compare(got, want, 2e-5);
        hone_model_release(bytes);
      }
      hone_model_release(m);
    }
}

static void test_halves(void **state) {
  (void)state;
  static float x[COUNT], want[N * 8], got[N * 8];
  static uint16_t h[COUNT];
  hone_model *m = net_parse("take", NCHW);
  for (int i = 0; i < COUNT; i++) {
    h[i] = hn_f32_to_f16((float)(i * 37 % 101) / 50 - 1);
    x[i] = hn_f16_to_f32(h[i]);
  }
  run(m, x, want, false);
  hone_model *halves = take(m, &(hone_arriving){.dtype = HONE_DTYPE_F16});
  run(halves, h, got, false);
  compare(got, want, 1e-6);
  hone_model_release(halves);
  /* What is the model's own already changes nothing. */
  hone_model *same = take(m, &(hone_arriving){.dtype = HONE_DTYPE_F32});
  run(same, x, got, false);
  assert_memory_equal(got, want, sizeof got);
  hone_model_release(same);
  hone_model_release(m);
}

static void refuse(const char *text, const char *input, const hone_arriving *o, hone_status status,
                   const char *word) {
  hone_model *m = net_parse("take", text), *out = NULL;
  hone_error e = {0};
  assert_int_equal(hone_model_take(m, input, o, &out, &e), status);
  assert_null(out);
  if (!strstr(e.what, word)) fail_msg("%s", e.what);
  hone_model_release(m);
}

static void test_refused(void **state) {
  (void)state;
  static const char flat[] = "graph g(%x: f32[2x7]) -> (%y) {\n  %y = Relu(%x)\n}\n",
                    two[] = "graph g(%x: f32[2x7], %z: f32[2x7]) -> (%y) {\n  %y = Add(%x, %z)\n}\n",
                    whole[] = "graph g(%i: i64[3]) -> (%y) {\n  %y = Neg(%i)\n}\n",
                    through[] = "graph g(%x: f32[1x3x4x4]) -> (%x, %y) {\n  %y = Relu(%x)\n}\n";
  const hone_arriving bytes = {.preprocess = &plain}, halves = {.dtype = HONE_DTYPE_F16};
  refuse(flat, NULL, &bytes, HONE_ERROR_USAGE, "no picture");
  refuse(flat, "no", &halves, HONE_ERROR_USAGE, "no input 'no'");
  refuse(two, NULL, &halves, HONE_ERROR_USAGE, "name one");
  refuse(whole, NULL, &halves, HONE_ERROR_USAGE, "no input of floats");
  refuse(whole, "i", &halves, HONE_ERROR_UNSUPPORTED, "i64");
  refuse(through, NULL, &bytes, HONE_ERROR_UNSUPPORTED, "output");
  refuse(flat, NULL, &(hone_arriving){.dtype = HONE_DTYPE_STRING}, HONE_ERROR_USAGE, "string");
  const hone_preprocess zero = {.normalise = true, .scale = 1};
  refuse(NCHW, NULL, &(hone_arriving){.preprocess = &zero}, HONE_ERROR_USAGE, "deviation of 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_halves),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
