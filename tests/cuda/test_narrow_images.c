/* Images without padding (plan/images.c) on a GPU (an emulated one will do): which they are, and that the
 * answers are the CPU's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/api.h"
#include "net.h"

#include <hone/hone.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 20, PIXELS = SIDE * SIDE };

static hn_value *conv(hn_model *m, hn_value *x, int64_t out, int64_t in, unsigned seed) {
  static const int64_t pads[] = {1, 1, 1, 1};
  hn_value *y =
      net_op(m, "Conv", (hn_value *[]){x, net_weights(m, 4, (const int64_t[]){out, in, 3, 3}, seed)}, 2);
  assert_true(hn_node_set_ints(y->producer, "pads", pads, 4));
  return y;
}

static hn_value *image(hn_model *m) {
  return net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){2, 3, SIDE, SIDE});
}

/* A convolution alone reads the image. */
static hn_model *one_reader(void) {
  hn_model *m = net_begin();
  net_finish(m, conv(m, image(m), 16, 3, 1));
  return m;
}

/* What the first two make is taken from the image, and scaled by channel: its result has pixels of eight
 * channels, and must not take the place of one of four. */
static hn_model *denoiser(void) {
  hn_model *m = net_begin();
  hn_value *x = image(m);
  hn_value *a = net_op(m, "Relu", (hn_value *[]){conv(m, x, 16, 3, 1)}, 1);
  hn_value *d = net_op(m, "Sub", (hn_value *[]){x, conv(m, a, 3, 16, 2)}, 2);
  hn_value *s =
      net_constant(m, HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 1, 1}, (const float[]){.5f, 1.5f, 2});
  net_finish(m, conv(m, net_op(m, "Mul", (hn_value *[]){d, s}, 2), 16, 3, 3));
  return m;
}

/* An image of six channels has no padding that would be worth it. */
static hn_model *six_channels(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){2, 6, SIDE, SIDE});
  net_finish(m, conv(m, x, 16, 6, 1));
  return m;
}

static int narrow_images(const hn_plan *p) {
  int n = 0;
  for (size_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i];
    const bool narrow = s->desc.layout == HONE_LAYOUT_CHANNELS_LAST && s->desc.channel_pitch == 4 &&
                        hone_dtype_size(s->desc.dtype) == 2;
    if (narrow) assert_int_equal(s->bytes, hone_desc_bytes(&s->desc));
    n += narrow;
  }
  return n;
}

static float *run(hn_model *m, const char *device, const char *precision, const float *x, int *narrow) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *c = NULL;
  hone_error e = {0};
  const hone_engine_options o = {
      .device = device, .threads = 2, .tuning = "off", .tactics = "-cudnn*,-conv_mma*"};
  assert_int_equal(hone_engine_create(&o, &engine, &e), HONE_OK);
  if (hone_plan_create(engine, m, &(hone_plan_options){.level = 2, .precision = precision}, &plan, &e))
    fail_msg("%s: %s", e.where, e.what);
  *narrow = narrow_images(hn_api_plan(plan));
  assert_int_equal(hone_context_create(plan, &c, &e), HONE_OK);
  const hone_tensor in = {*hone_plan_input_desc(plan, 0), (void *)(uintptr_t)x};
  const hone_tensor *list[] = {&in};
  if (hone_context_run(c, list, NULL, &e)) fail_msg("%s: %s", e.where, e.what);
  const hone_tensor *y = hone_context_output(c, 0);
  const size_t bytes = (size_t)hone_desc_bytes(&y->desc);
  float *copy = malloc(bytes);
  memcpy(copy, y->data, bytes);
  hone_context_destroy(c);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  return copy;
}

static void check(hn_model *(*make)(void), int64_t channels, int images) {
  static float x[2 * 6 * PIXELS];
  unsigned seed = 7;
  for (int64_t i = 0; i < 2 * channels * PIXELS; i++)
    x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
  for (int bf16 = 0; bf16 < 2; bf16++) {
    int none, narrow;
    hn_model *m[] = {make(), make()};
    float *want = run(m[0], "cpu", "f32", x, &none),
          *got = run(m[1], "cuda", bf16 ? "bf16" : "fp16", x, &narrow);
    float range = 0, most = 0;
    for (int i = 0; i < 2 * 16 * PIXELS; i++) {
      range = fmaxf(range, fabsf(want[i]));
      most = fmaxf(most, isnan(got[i]) ? INFINITY : fabsf(got[i] - want[i]));
    }
    assert_true(most <= range / (bf16 ? 32 : 128));
    assert_int_equal(none, 0);
    assert_int_equal(narrow, images);
    free(want);
    free(got);
    hone_model_release(m[0]);
    hone_model_release(m[1]);
  }
}

static void an_image_has_no_padding(void **state) {
  (void)state;
  check(one_reader, 3, 1);
}
static void results_do_not_take_its_place(void **state) {
  (void)state;
  check(denoiser, 3, 1);
}
static void others_keep_theirs(void **state) {
  (void)state;
  check(six_channels, 6, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_image_has_no_padding),
                                     cmocka_unit_test(results_do_not_take_its_place),
                                     cmocka_unit_test(others_keep_theirs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
