/* When hone tune calls the tuned plan slower as a whole. */
#include <hone/improve.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static bool slower(double old, double new, double noise, uint32_t n) {
  double a[HONE_TUNE_ROUNDS], b[HONE_TUNE_ROUNDS];
  for (uint32_t i = 0; i < n; i++) {
    a[i] = old * (1 + noise * (i % 3 - 1.0));
    b[i] = new *(1 + noise * ((i + 1) % 3 - 1.0));
  }
  return hone_times_slower(a, b, n);
}

static void test_slower(void **state) {
  (void)state;
  assert_true(slower(1, 1.1, 0, 15));
  assert_true(slower(1, 1.1, 0.02, 15));
  assert_true(slower(1e-3, 1.1e-3, 0.02, 15));
  assert_true(slower(1, 1.5, 0.02, 3));
  assert_false(slower(1, 1.1, 0.2, 15)); /* noise */
  assert_false(slower(1, 1.015, 0, 15)); /* too little to matter */
  assert_false(slower(1, 1, 0.02, 15));
  assert_false(slower(1.1, 1, 0, 15)); /* faster */
  assert_false(slower(1, 2, 0, 0));
  assert_false(hone_times_slower(NULL, (const double[]){1}, 1));
}

/* One round in which somebody else had the processor is no verdict. */
static void test_outlier(void **state) {
  (void)state;
  const double a[5] = {1, 1.001, 1.002, 1.001, 1}, b[5] = {1, 1.002, 9, 1.001, 1};
  assert_false(hone_times_slower(a, b, 5));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_slower), cmocka_unit_test(test_outlier)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
