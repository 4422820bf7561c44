/* Kernels of support vector machines with more vectors and features than go at once, and rests of both: for
 * few samples from the f32 of the node, for more from f64 that is made of it once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VECTORS = 11, WIDTH = 19, MOST_ROWS = 6 };

static float vector_of(int k, int i) { return (float)((k * 7 + i * 5) % 23 - 11) / 16; }
static float coefficient_of(int k) { return (float)(k % 5 - 2) / 4; }
static float x_of(int r, int i) { return (float)((r * 11 + i * 3) % 17 - 8) / 8; }

/* gamma 0.125, coef0 0.25, degree 3, as the node below has them. */
static double kernel_of(const char *kind, int r, int k) {
  double product = 0, square = 0;
  for (int i = 0; i < WIDTH; i++) {
    const double x = (double)x_of(r, i), v = (double)vector_of(k, i);
    product += x * v;
    square += (x - v) * (x - v);
  }
  if (strcmp(kind, "RBF") == 0) return exp(-0.125 * square);
  if (strcmp(kind, "POLY") == 0) return pow(0.125 * product + 0.25, 3);
  return strcmp(kind, "SIGMOID") == 0 ? tanh(0.125 * product + 0.25) : product;
}

static hn_model *regressor(const char *kind, int rows) {
  static char text[1 << 14];
  size_t n = (size_t)snprintf(
      text, sizeof text,
      "ir 8\nopset 17\nopset \"ai.onnx.ml\" 3\ngraph g(%%x: f32[%dx%d]) -> (%%y) {\n"
      "  %%y = ai.onnx.ml::SVMRegressor(%%x) {kernel_type=\"%s\", n_supports=%d, rho=floats[0.5], "
      "kernel_params=floats[0.125, 0.25, 3], coefficients=floats[",
      rows, WIDTH, kind, VECTORS);
  for (int k = 0; k < VECTORS; k++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%.9g", k ? ", " : "", (double)coefficient_of(k));
  n += (size_t)snprintf(text + n, sizeof text - n, "], support_vectors=floats[");
  for (int k = 0; k < VECTORS; k++)
    for (int i = 0; i < WIDTH; i++)
      n += (size_t)snprintf(text + n, sizeof text - n, "%s%.9g", k || i ? ", " : "", (double)vector_of(k, i));
  snprintf(text + n, sizeof text - n, "]}\n}\n");
  return net_parse("svm", text);
}

/* Level 0: sums in f64 in another order, and one rounding to f32. Level 2: sums over vectors are products in
 * f32, but of RBF. */
static void check_kernels(int level) {
  static const char *const kinds[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  for (int kind = 0; kind < 4; kind++)
    for (int rows = 1; rows <= MOST_ROWS; rows++) {
      net_session s = net_open(regressor(kinds[kind], rows), level, false, 1);
      float x[MOST_ROWS * WIDTH];
      for (int r = 0; r < rows; r++)
        for (int i = 0; i < WIDTH; i++) x[r * WIDTH + i] = x_of(r, i);
      const hone_tensor in = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){rows, WIDTH}), x};
      hone_error e = {0};
      if (hone_context_run(s.context, (const hone_tensor *[]){&in}, NULL, &e) != HONE_OK)
        fail_msg("%s: %s", e.where, e.what);
      const float *y = hone_context_output(s.context, 0)->data;
      for (int r = 0; r < rows; r++) {
        double want = 0.5, size = 0.5;
        for (int k = 0; k < VECTORS; k++) {
          const double term = (double)coefficient_of(k) * kernel_of(kinds[kind], r, k);
          want += term, size += fabs(term);
        }
        const bool product = level && strcmp(kinds[kind], "RBF") != 0;
        const double roundings = product ? VECTORS + WIDTH + 4 : 1;
        assert_true(fabs((double)y[r] - want) <= size * (roundings * 0x1p-24 + 0x1p-40));
      }
      net_close(&s);
    }
}

static void every_kernel_of_few_and_many_samples(void **state) {
  (void)state;
  check_kernels(0);
  check_kernels(2);
}

/* Linear regressors of one target and of more than a vector has, of samples that go together and rests. */
static void linear_models_of_many_targets(void **state) {
  static const int targets[] = {1, 3, 8, 13};
  (void)state;
  for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
    for (int rows = 1; rows <= MOST_ROWS; rows++) {
      char text[8192];
      size_t n =
          (size_t)snprintf(text, sizeof text,
                           "ir 8\nopset 17\nopset \"ai.onnx.ml\" 3\ngraph g(%%x: f32[%dx%d]) -> (%%y) {\n"
                           "  %%y = ai.onnx.ml::LinearRegressor(%%x) {targets=%d, coefficients=floats[",
                           rows, WIDTH, targets[t]);
      for (int k = 0; k < targets[t] * WIDTH; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%g", k ? ", " : "",
                              (double)vector_of(k / WIDTH, k % WIDTH));
      snprintf(text + n, sizeof text - n, "]} }");
      net_session s = net_open(net_parse("linear", text), 2, false, 1);
      float x[MOST_ROWS * WIDTH];
      for (int i = 0; i < rows * WIDTH; i++) x[i] = x_of(i / WIDTH, i % WIDTH);
      const hone_tensor in = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){rows, WIDTH}), x};
      hone_error e = {0};
      if (hone_context_run(s.context, (const hone_tensor *[]){&in}, NULL, &e) != HONE_OK)
        fail_msg("%s: %s", e.where, e.what);
      const float *y = hone_context_output(s.context, 0)->data;
      for (int i = 0; i < rows * targets[t]; i++)
        assert_true(fabs((double)y[i] - kernel_of("LINEAR", i / targets[t], i % targets[t])) <= 1e-5);
      net_close(&s);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel_of_few_and_many_samples),
                                     cmocka_unit_test(linear_models_of_many_targets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
