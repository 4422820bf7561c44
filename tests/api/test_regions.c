/* Regions that RoiAlign cannot take: its tactic refuses them in the reference's words, and pixels that are no
 * numbers reach the same cells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REGIONS = 5, CHANNELS = 19, SIDE = 12, CELLS = 6, SIZE = REGIONS * CHANNELS * CELLS };

static const char *const modes[] = {"mode=\"avg\", sampling_ratio=2", "mode=\"max\"", "mode=\"avg\""};

/* What a run says, and makes. */
static hone_status say(const char *mode, bool reference, const float *x, const float *regions,
                       const int64_t *image, float *y, char *said, size_t size) {
  char text[512];
  snprintf(text, sizeof text,
           "opset 18\ngraph g(%%x: f32[2x19x12x12], %%r: f32[5x4], %%i: i64[5]) -> (%%y) {\n"
           "%%y = RoiAlign(%%x, %%r, %%i) {output_height=3, output_width=2, %s}\n}\n",
           mode);
  net_session s = net_open(net_parse("regions", text), 2, reference, 3);
  const hone_tensor in[] = {
      {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){2, CHANNELS, SIDE, SIDE}), (void *)(uintptr_t)x},
      {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){REGIONS, 4}), (void *)(uintptr_t)regions},
      {hone_desc(HONE_DTYPE_I64, 1, (const int64_t[]){REGIONS}), (void *)(uintptr_t)image}};
  const hone_tensor *inputs[] = {&in[0], &in[1], &in[2]};
  hone_error e = {0};
  const hone_status status = hone_context_run(s.context, inputs, NULL, &e);
  snprintf(said, size, "%s", status == HONE_OK ? "" : e.what);
  bool tactic = reference;
  hone_step_info info;
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    assert_true(hone_plan_step(s.plan, i, &info));
    tactic |= !strcmp(info.op_type, "RoiAlign") && strcmp(info.tactic, "ref") != 0;
  }
  assert_true(tactic);
  if (status == HONE_OK) memcpy(y, hone_context_output(s.context, 0)->data, SIZE * sizeof *y);
  net_close(&s);
  return status;
}

static const float fine[REGIONS * 4] = {1, 2, 7, 9, 0, 0, 11, 11, -5, 3, 4, 20, 6, 6, 2, 1, 5, 5, 5, 5};

static void regions_are_refused_as_by_the_reference(void **state) {
  static float x[2 * CHANNELS * SIDE * SIDE], y[SIZE];
  static const float values[] = {NAN, INFINITY, 3e38f, 1e6f, -1e30f, 7};
  static const int64_t images[] = {2, -1, INT64_MAX, 1};
  (void)state;
  for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
    for (size_t k = 0; k < sizeof values / sizeof *values + sizeof images / sizeof *images; k++) {
      const size_t n = sizeof values / sizeof *values;
      float r[REGIONS * 4];
      int64_t image[REGIONS] = {0, 1, 1, 0, 1};
      char want[512], got[512];
      memcpy(r, fine, sizeof r);
      if (k < n)
        r[3 * 4 + 2] = values[k], image[4] = 9; /* the first wrong one is told */
      else
        image[2] = images[k - n];
      if (k == n - 1) image[4] = 0;
      const hone_status status = say(modes[m], true, x, r, image, y, want, sizeof want);
      assert_int_equal(say(modes[m], false, x, r, image, y, got, sizeof got), status);
      assert_string_equal(got, want);
      assert_int_equal(status, k == n - 1 || k == n + 3 ? HONE_OK : HONE_ERROR_INPUT);
    }
}

static void pixels_that_are_no_numbers_reach_the_same_cells(void **state) {
  static float x[2 * CHANNELS * SIDE * SIDE], want[SIZE], got[SIZE];
  static const int64_t image[REGIONS] = {0, 1, 1, 0, 1};
  char said[512];
  (void)state;
  for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
    for (int i = 0; i < 2 * CHANNELS * SIDE * SIDE; i++) x[i] = (float)(i * 37 % 101) / 64;
    for (int i = 0; i < 2 * CHANNELS * SIDE * SIDE; i += 53) x[i] = NAN;
    assert_int_equal(say(modes[m], true, x, fine, image, want, said, sizeof said), HONE_OK);
    assert_int_equal(say(modes[m], false, x, fine, image, got, said, sizeof said), HONE_OK);
    for (int i = 0; i < SIZE; i++)
      assert_true(isnan(want[i]) ? isnan(got[i]) : fabsf(got[i] - want[i]) <= 1e-6f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(regions_are_refused_as_by_the_reference),
      cmocka_unit_test(pixels_that_are_no_numbers_reach_the_same_cells),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
