/* Running sums of long columns whose parts leave the range of f32, where their totals do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5000, COLUMNS = 37 };

/* Rows with a number; all others are 0. */
typedef struct column {
  const char *what;
  int row[4];
  float value[4];
} column;

static const column columns[] = {
    {"a part's sum beyond, its totals within", {100, 600, 700, 900}, {-3e38f, 3e38f, 3e38f, -3e38f}},
    {"the same of the other sign", {511, 512, 513, 1023}, {3e38f, -3e38f, -3e38f, 1e38f}},
    {"beyond and back", {10, 511, 2000, 4000}, {3e38f, 3e38f, -3e38f, -2e38f}},
    {"beyond and back within a part", {513, 514, 515, 516}, {3e38f, 3e38f, -3e38f, -3e38f}},
    {"the last part", {4700, 4990, 4995, 4999}, {-3e38f, 3e38f, 3e38f, -3e38f}},
    {"an infinity", {4100, 4200, 4300, 4400}, {1, INFINITY, 2, 3}},
    {"a NaN", {0, 1, 2, 3}, {1, NAN, 2, 3}},
};

static void sums_beyond_come_back(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    for (int exclusive = 0; exclusive < 2; exclusive++) {
      float *x = calloc(ROWS * COLUMNS, sizeof *x);
      assert_non_null(x);
      for (int k = 0; k < 4; k++) x[columns[i].row[k] * COLUMNS + COLUMNS - 1] = columns[i].value[k];
      for (int k = 0; k < ROWS; k++) x[k * COLUMNS + 3] = 0.25f;
      hn_model *m = net_begin();
      hn_value *in = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){ROWS, COLUMNS});
      const int64_t axis = 0;
      hn_value *y =
          net_op(m, "CumSum", (hn_value *[]){in, net_constant(m, HONE_DTYPE_I64, 0, NULL, &axis)}, 2);
      assert_true(hn_node_set_int(y->producer, "exclusive", exclusive));
      net_finish(m, y);
      net_session s = net_open(m, 2, false, 1);
      hone_error error = {0};
      const hone_tensor t = {*hone_plan_input_desc(s.plan, 0), x};
      if (hone_context_run(s.context, (const hone_tensor *[]){&t}, NULL, &error) != HONE_OK)
        fail_msg("%s", error.what);
      const float *got = hone_context_output(s.context, 0)->data;
      double sum = 0, other = 0;
      for (int k = 0; k < ROWS; k++) {
        const int at = k * COLUMNS + COLUMNS - 1;
        const double before = sum;
        sum += (double)x[at], other += 0.25;
        const float want = (float)(exclusive ? before : sum), have = got[at];
        const bool same = isnan(want)   ? isnan(have)
                          : isinf(want) ? have == want
                                        : fabs((double)have - (double)want) <=
                                              fabs((double)want) * 0x1p-20 + 3e38 * 0x1p-50;
        if (!same) fail_msg("%s, row %d: %g, not %g", columns[i].what, k, (double)have, (double)want);
        assert_true(fabs((double)got[k * COLUMNS + 3] - other + (exclusive ? 0.25 : 0)) <= 1e-3);
      }
      net_close(&s);
      free(x);
    }
}

/* Along the last axis, where eight are summed at a time: what is beyond may be the eighth. */
static void lines_beyond_come_back(void **state) {
  (void)state;
  static const float line[] = {-3e38f, 0, 0, 0, 3e38f, 0, 0, 3e38f, 0, -3e38f};
  for (int64_t n = 9; n <= 10; n++)
    for (int way = 0; way < 4; way++) {
      const bool exclusive = way & 1, reverse = way & 2;
      float x[10];
      for (int64_t k = 0; k < n; k++) x[reverse ? n - 1 - k : k] = line[k];
      hn_model *m = net_begin();
      hn_value *in = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){1, n});
      const int64_t axis = 1;
      hn_value *y =
          net_op(m, "CumSum", (hn_value *[]){in, net_constant(m, HONE_DTYPE_I64, 0, NULL, &axis)}, 2);
      assert_true(hn_node_set_int(y->producer, "exclusive", exclusive));
      assert_true(hn_node_set_int(y->producer, "reverse", reverse));
      net_finish(m, y);
      net_session s = net_open(m, 2, false, 1);
      const hone_tensor t = {*hone_plan_input_desc(s.plan, 0), x};
      assert_int_equal(hone_context_run(s.context, (const hone_tensor *[]){&t}, NULL, NULL), HONE_OK);
      const float *got = hone_context_output(s.context, 0)->data;
      double sum = 0;
      for (int64_t k = 0; k < n; k++) {
        const double before = sum;
        sum += (double)line[k];
        const float want = (float)(exclusive ? before : sum), have = got[reverse ? n - 1 - k : k];
        if (have != want)
          fail_msg("%d of %d, way %d: %g, not %g", (int)k, (int)n, way, (double)have, (double)want);
      }
      net_close(&s);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_beyond_come_back),
                                     cmocka_unit_test(lines_beyond_come_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
