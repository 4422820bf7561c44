/* Thresholds as text, and Amdahl's formula. */
#include <hone/hone.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void thresholds_by_text(void **state) {
  (void)state;
  hone_error error = {0};
  hone_thresholds *t = hone_thresholds_create();
  assert_int_equal(hone_thresholds_parse(t, "idle_share=3.5", &error), HONE_OK);
  assert_true(hone_thresholds_get(t, "idle_share") == 3.5);
  static const char *const wrong[] = {"idle_share", "idle_share=", "idle_share=x",   "idle_share=1x",
                                      "none=1",     "=1",          "idle_share=inf", ""};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (hone_thresholds_parse(t, wrong[i], &error) != HONE_ERROR_USAGE) fail_msg("accepted: '%s'", wrong[i]);
  assert_true(hone_thresholds_get(t, "idle_share") == 3.5);
  assert_true(isnan(hone_thresholds_get(NULL, "none")));
  size_t n;
  const hone_threshold_info *list = hone_threshold_list(&n);
  for (size_t i = 0; i < n; i++) {
    assert_true(*list[i].source);
    assert_true(hone_thresholds_get(NULL, list[i].name) == list[i].value);
  }
  hone_thresholds_destroy(t);
}

static void amdahl(void **state) {
  (void)state;
  assert_true(fabs(hone_amdahl(0.2, 2) - 1 / 0.9) < 1e-12);
  assert_true(hone_amdahl(0, 10) == 1);
  assert_true(hone_amdahl(1, 4) == 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(thresholds_by_text), cmocka_unit_test(amdahl)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
