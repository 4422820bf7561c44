/* NonZero and TopK on sizes around their blocks, against their definitions. */
#include "ops/op_case.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint32_t state = 1;
static uint32_t draw(uint32_t n) {
  state = state * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)(state >> 8) * n >> 24);
}

/* ------------------------------------------------------------------ NonZero */

static void check_non_zero(hone_dtype dtype, const char *dims, uint32_t part) {
  op_case c;
  op_begin(&c, "NonZero", 13);
  hone_tensor *x = op_in(&c, dtype, dims, NULL, 0);
  const int64_t count = hone_desc_count(&x->desc);
  for (int64_t i = 0; i < count; i++) {
    const double some[] = {1, 2, dtype == HONE_DTYPE_U8 || dtype == HONE_DTYPE_BOOL ? 1 : -1,
                           hone_dtype_is_float(dtype) ? NAN : 64};
    const double none = hone_dtype_is_float(dtype) && draw(2) ? -0.0 : 0;
    op_set(x, i, draw(100) < part ? some[draw(4)] : none);
  }
  if (part == 200) /* whole blocks of zeros and of others */
    for (int64_t i = 0; i < count; i++) op_set(x, i, (i >> 6) % 3 == 0 || i == count - 1);
  assert_int_equal(op_run(&c, 1), HONE_OK);
  const hone_tensor *y = &c.out[0];
  const int64_t n = y->desc.dim[1];
  int64_t at = 0;
  assert_int_equal(y->desc.dim[0], x->desc.rank);
  for (int64_t i = 0; i < count; i++) {
    if (op_get(x, i) == 0) continue;
    assert_true(at < n);
    int64_t place = 0;
    for (int32_t d = 0; d < x->desc.rank; d++)
      place = place * x->desc.dim[d] + ((const int64_t *)y->data)[d * n + at];
    assert_int_equal(place, i);
    at++;
  }
  assert_int_equal(at, n);
  op_end(&c);
}

static void non_zero_finds_every_element_in_order(void **s) {
  static const hone_dtype dtypes[] = {HONE_DTYPE_BOOL, HONE_DTYPE_U8,  HONE_DTYPE_F16,
                                      HONE_DTYPE_BF16, HONE_DTYPE_I16, HONE_DTYPE_F32,
                                      HONE_DTYPE_I32,  HONE_DTYPE_F64, HONE_DTYPE_I64};
  static const char *const dims[] = {"",    "0",    "1",    "7",     "63",    "64",    "65",     "700",
                                     "1x1", "9x64", "64x9", "130x1", "1x130", "5x0x3", "3x1x41", "2x3x5x7"};
  static const uint32_t parts[] = {0, 3, 50, 100, 200};
  (void)s;
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
      for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) check_non_zero(dtypes[t], dims[d], parts[p]);
}

/* ------------------------------------------------------------------ TopK */

/* Whether element a comes before b. */
static bool before(const hone_tensor *x, bool largest, int64_t a, int64_t b) {
  const double u = op_get(x, a), v = op_get(x, b);
  const int order = isnan(u) || isnan(v) ? isnan(u) - isnan(v) : (u > v) - (u < v);
  return order ? (largest ? order > 0 : order < 0) : a < b;
}

enum { TIES, SPREAD, NEAR, RISING, KINDS };

static double value(int kind, hone_dtype dtype, int64_t i) {
  const bool real = hone_dtype_is_float(dtype);
  if (real && draw(50) == 0) return draw(2) ? NAN : draw(2) ? INFINITY : -INFINITY;
  if (kind == TIES) return (double)draw(5) - (draw(2) && dtype != HONE_DTYPE_U8 ? 2 : 0);
  if (kind == RISING) return (double)(dtype == HONE_DTYPE_U8 ? i % 256 : i);
  if (!real) return (double)draw(200);
  const double v = ldexp((double)draw(1 << 24), kind == NEAR ? -24 : (int)draw(60) - 40);
  return kind == NEAR ? 1 + v / 256 : draw(2) ? v : -v;
}

/* Of every line of 3 x n x 2 along the middle. */
static void check_top_k(hone_dtype dtype, int64_t n, int64_t k, int kind, bool largest) {
  op_case c;
  char dims[40];
  const double kd = (double)k;
  snprintf(dims, sizeof dims, "3x%lldx2", (long long)n);
  op_begin(&c, "TopK", 11);
  hone_tensor *x = op_in(&c, dtype, dims, NULL, 0);
  op_in(&c, HONE_DTYPE_I64, "1", &kd, 0);
  op_attrs(&c, largest ? "axis=1" : "axis=1 largest=0");
  for (int64_t i = 0; i < 6 * n; i++) op_set(x, i, value(kind, dtype, i / 2));
  assert_int_equal(op_run(&c, 2), HONE_OK);
  const int64_t *index = c.out[1].data;
  for (int64_t line = 0; line < 6; line++) {
    const int64_t from = line / 2 * n * 2 + line % 2, to = line / 2 * k * 2 + line % 2;
    int64_t last = -1, behind = 0; /* elements that come after the last result: all but the results */
    for (int64_t j = 0; j < k; j++) {
      const int64_t at = from + index[to + 2 * j] * 2;
      const double v = op_get(x, at), y = op_get(&c.out[0], to + 2 * j);
      assert_true(index[to + 2 * j] >= 0 && index[to + 2 * j] < n);
      assert_true(v == y || (isnan(v) && isnan(y)));
      assert_true(last < 0 || before(x, largest, last, at));
      last = at;
    }
    for (int64_t i = 0; k && i < n; i++) behind += before(x, largest, last, from + 2 * i);
    assert_true(!k || behind == n - k);
  }
  op_end(&c);
}

static void top_k_is_the_head_of_the_order(void **s) {
  static const hone_dtype dtypes[] = {HONE_DTYPE_F32, HONE_DTYPE_F16, HONE_DTYPE_I64, HONE_DTYPE_U8,
                                      HONE_DTYPE_F64};
  static const int64_t sizes[] = {1, 2, 16, 17, 33, 300, 2047, 2048, 5000};
  (void)s;
  for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (int kind = 0; kind < KINDS; kind++) {
        const int64_t n = sizes[i], ks[] = {0, 1, 15, 16, 17, 40, n / 3, n - 1, n};
        for (size_t q = 0; q < sizeof ks / sizeof *ks; q++)
          if (ks[q] <= n) check_top_k(dtypes[t], n, ks[q], kind, draw(2));
      }
}

/* Keys as far apart as they can be. */
static void whole_range_of_integers(void **s) {
  static const int64_t values[] = {INT64_MIN, 0, INT64_MAX, -1, INT64_MIN + 1, INT64_MAX - 1, 1};
  enum { N = 40, K = 20 };
  (void)s;
  for (int largest = 0; largest < 2; largest++) {
    op_case c;
    op_begin(&c, "TopK", 11);
    hone_tensor *x = op_in(&c, HONE_DTYPE_I64, "40", NULL, 0);
    op_in(&c, HONE_DTYPE_I64, "1", (const double[]){K}, 0);
    op_attrs(&c, largest ? "largest=1" : "largest=0");
    int64_t *v = x->data;
    for (int i = 0; i < N; i++) v[i] = values[i % 7];
    assert_int_equal(op_run(&c, 2), HONE_OK);
    const int64_t *index = c.out[1].data;
    for (int j = 1; j < K; j++) {
      const int64_t a = v[index[j - 1]], b = v[index[j]];
      assert_true(a == b ? index[j - 1] < index[j] : largest ? a > b : a < b);
    }
    for (int i = 0; i < N; i++) {
      int64_t ahead = 0; /* a result exactly where fewer than K come before it */
      bool there = false;
      for (int j = 0; j < N; j++) ahead += v[j] == v[i] ? j < i : largest ? v[j] > v[i] : v[j] < v[i];
      for (int j = 0; j < K; j++) there |= index[j] == i;
      assert_int_equal(there, ahead < K);
    }
    op_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(non_zero_finds_every_element_in_order),
      cmocka_unit_test(top_k_is_the_head_of_the_order),
      cmocka_unit_test(whole_range_of_integers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
