/* Elementwise operators of types that have no kernels: large ones, whose references run in slices on several
 * threads, and functions that are polynomials, against the C library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 41, COLUMNS = 2003 };

/* One run of the text on 4 threads; the result's bytes belong to the caller. */
static void *result_of(const char *text, const hone_tensor *const *in, hone_status wanted) {
  net_session s = net_open(net_parse("elementwise", text), 2, false, 4);
  hone_error e = {0};
  const hone_status status = hone_context_run(s.context, in, NULL, &e);
  if (status != wanted) fail_msg("%s: %s", e.where, e.what);
  if (wanted != HONE_OK) {
    assert_true(strlen(e.what) > 0);
    net_close(&s);
    return NULL;
  }
  const hone_tensor *y = hone_context_output(s.context, 0);
  const size_t bytes = (size_t)hone_desc_bytes(&y->desc);
  void *copy = malloc(bytes);
  assert_non_null(copy);
  memcpy(copy, y->data, bytes);
  net_close(&s);
  return copy;
}

static hone_tensor tensor(hone_dtype dtype, int64_t rows, int64_t columns, void *data) {
  return (hone_tensor){hone_desc(dtype, 2, (const int64_t[]){rows, columns}), data};
}

static void slices_of_broadcast_operands(void **state) {
  static int32_t a[ROWS * COLUMNS], b[ROWS * COLUMNS];
  static const struct {
    const char *dims;
    int64_t rows, columns;
  } forms[] = {{"41x2003", ROWS, COLUMNS}, {"1x2003", 1, COLUMNS}, {"41x1", ROWS, 1}, {"1x1", 1, 1}};
  (void)state;
  for (int i = 0; i < ROWS * COLUMNS; i++) a[i] = i * 7919 % 10007 - 5000, b[i] = i % 13 - 20;
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    char text[256];
    snprintf(text, sizeof text,
             "ir 8\nopset 17\ngraph g(%%x: i32[41x2003], %%z: i32[%s]) -> (%%y) { %%y = Div(%%x, %%z) }",
             forms[f].dims);
    const hone_tensor x = tensor(HONE_DTYPE_I32, ROWS, COLUMNS, a),
                      z = tensor(HONE_DTYPE_I32, forms[f].rows, forms[f].columns, b);
    int32_t *y = result_of(text, (const hone_tensor *[]){&x, &z}, HONE_OK);
    for (int r = 0; r < ROWS; r++)
      for (int c = 0; c < COLUMNS; c++)
        assert_int_equal(y[r * COLUMNS + c],
                         a[r * COLUMNS + c] /
                             b[(r % forms[f].rows) * forms[f].columns + c % forms[f].columns]);
    free(y);
  }
}

static void a_slice_that_fails_says_why(void **state) {
  static int32_t a[ROWS * COLUMNS], b[ROWS * COLUMNS];
  (void)state;
  for (int i = 0; i < ROWS * COLUMNS; i++) a[i] = i, b[i] = 3;
  b[ROWS * COLUMNS - 1] = 0;
  const hone_tensor x = tensor(HONE_DTYPE_I32, ROWS, COLUMNS, a),
                    z = tensor(HONE_DTYPE_I32, ROWS, COLUMNS, b);
  result_of("ir 8\nopset 17\ngraph g(%x: i32[41x2003], %z: i32[41x2003]) -> (%y) { %y = Div(%x, %z) }",
            (const hone_tensor *[]){&x, &z}, HONE_ERROR_INPUT);
}

static void division_of_the_ends(void **state) {
  int32_t a[] = {INT32_MIN, INT32_MAX, INT32_MIN, -7, 7, INT32_MIN},
          b[] = {1, -2, INT32_MIN, 2, INT32_MAX, 3};
  (void)state;
  const hone_tensor x = tensor(HONE_DTYPE_I32, 1, 6, a), z = tensor(HONE_DTYPE_I32, 1, 6, b);
  const char *text = "ir 8\nopset 17\ngraph g(%x: i32[1x6], %z: i32[1x6]) -> (%y) { %y = Div(%x, %z) }";
  int32_t *y = result_of(text, (const hone_tensor *[]){&x, &z}, HONE_OK);
  for (int i = 0; i < 6; i++) assert_int_equal(y[i], a[i] / b[i]);
  free(y);
  b[0] = -1;
  y = result_of(text, (const hone_tensor *[]){&x, &z}, HONE_OK);
  assert_int_equal(y[0], INT32_MIN); /* wraps */
  for (int i = 1; i < 6; i++) assert_int_equal(y[i], a[i] / b[i]);
  free(y);
}

/* Largest error, in units of 1 or, where it is more, of the result. */
static double worst(const char *op, const float *x, double (*f)(double)) {
  char text[160];
  snprintf(text, sizeof text, "ir 8\nopset 17\ngraph g(%%x: f32[41x2003]) -> (%%y) { %%y = %s(%%x) }", op);
  const hone_tensor in = tensor(HONE_DTYPE_F32, ROWS, COLUMNS, (void *)(uintptr_t)x);
  float *y = result_of(text, (const hone_tensor *[]){&in}, HONE_OK);
  double most = 0;
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    const double want = f((double)x[i]);
    assert_int_equal(isnan(want) != 0, isnan(y[i]) != 0);
    if (x[i] == 0) assert_int_equal(signbit(want) != 0, signbit(y[i]) != 0);
    if (!isnan(want)) most = fmax(most, fabs((double)y[i] - want) / fmax(1, fabs(want)));
  }
  free(y);
  return most;
}

static void functions_of_angles(void **state) {
  static float x[ROWS * COLUMNS];
  (void)state;
  static const float limits[] = {1, 30, 8192, 1e6f, 3e38f};
  for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
    for (int i = 0; i < ROWS * COLUMNS; i++)
      x[i] = limits[k] * ((float)(i * 2 - ROWS * COLUMNS) / (float)(ROWS * COLUMNS));
    if (k == 0) x[3] = -0.0f;
    if (k == 1) x[7] = INFINITY, x[9] = NAN, x[COLUMNS] = -INFINITY;
    /* Three units of the last place of 1. */
    assert_true(worst("Sin", x, sin) < 3 * 0x1p-24);
    assert_true(worst("Cos", x, cos) < 3 * 0x1p-24);
    assert_true(worst("Atan", x, atan) < 3 * 0x1p-24);
    assert_true(worst("Asin", x, asin) < 3 * 0x1p-24);
    assert_true(worst("Acos", x, acos) < 3 * 0x1p-24);
  }
}

static void tanh_of_f64(void **state) {
  static double x[ROWS * COLUMNS];
  (void)state;
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = ldexp((double)(i % 4001 - 2000), i % 50 - 45);
  x[0] = INFINITY, x[1] = -INFINITY, x[2] = NAN, x[3] = -0.0;
  const hone_tensor in = tensor(HONE_DTYPE_F64, ROWS, COLUMNS, x);
  double *y = result_of("ir 8\nopset 17\ngraph g(%x: f64[41x2003]) -> (%y) { %y = Tanh(%x) }",
                        (const hone_tensor *[]){&in}, HONE_OK);
  assert_true(y[0] == 1 && y[1] == -1 && isnan(y[2]) && y[3] == 0 && signbit(y[3]));
  for (int i = 3; i < ROWS * COLUMNS; i++)
    assert_true(fabs(y[i] - tanh(x[i])) <= 4 * 0x1p-53 * fabs(tanh(x[i])));
  free(y);
}

static void powers_of_two_types(void **state) {
  static float x[ROWS * COLUMNS];
  int64_t exponents[COLUMNS];
  (void)state;
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i % 97 - 48) / 16;
  for (int i = 0; i < COLUMNS; i++) exponents[i] = i % 6 - 1;
  const hone_tensor base = tensor(HONE_DTYPE_F32, ROWS, COLUMNS, x);
  hone_tensor by = tensor(HONE_DTYPE_I64, 1, COLUMNS, exponents);
  float *y =
      result_of("ir 8\nopset 17\ngraph g(%x: f32[41x2003], %z: i64[1x2003]) -> (%y) { %y = Pow(%x, %z) }",
                (const hone_tensor *[]){&base, &by}, HONE_OK);
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    const double want = pow((double)x[i], (double)exponents[i % COLUMNS]);
    assert_true((double)y[i] == want || fabs((double)y[i] - want) <= 0x1p-22 * fabs(want));
  }
  free(y);
  for (exponents[0] = 2; exponents[0] < 4; exponents[0]++) {
    by = tensor(HONE_DTYPE_I64, 1, 1, exponents);
    y = result_of("ir 8\nopset 17\ngraph g(%x: f32[41x2003], %z: i64[1x1]) -> (%y) { %y = Pow(%x, %z) }",
                  (const hone_tensor *[]){&base, &by}, HONE_OK);
    for (int i = 0; i < ROWS * COLUMNS; i++)
      assert_true(fabs((double)y[i] - pow((double)x[i], (double)exponents[0])) <=
                  0x1p-22 * fabs((double)y[i]));
    free(y);
  }
  /* An exponent that f32 does not hold. */
  x[0] = 1, x[1] = -1, exponents[0] = (1 << 24) + 1;
  y = result_of("ir 8\nopset 17\ngraph g(%x: f32[41x2003], %z: i64[1x1]) -> (%y) { %y = Pow(%x, %z) }",
                (const hone_tensor *[]){&base, &by}, HONE_OK);
  assert_true(y[0] == 1 && y[1] == -1);
  free(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slices_of_broadcast_operands),
                                     cmocka_unit_test(a_slice_that_fails_says_why),
                                     cmocka_unit_test(division_of_the_ends),
                                     cmocka_unit_test(functions_of_angles),
                                     cmocka_unit_test(tanh_of_f64),
                                     cmocka_unit_test(powers_of_two_types)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
