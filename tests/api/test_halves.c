/* Weights that a file has in f16 or bf16: products by them and tables that rows are read of keep 16 bits in
 * memory and in saved plans, and answers are those of f32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "base/half.h"
#include "temporary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 700, K = 101, N = 450, MOST = 40 };

static hn_value *halves(hn_model *m, hone_dtype type, int64_t rows, int64_t columns, unsigned seed) {
  uint16_t *w = malloc((size_t)(rows * columns) * sizeof *w);
  assert_non_null(w);
  for (int64_t i = 0; i < rows * columns; i++) {
    const float x = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
    w[i] = type == HONE_DTYPE_F16 ? hn_f32_to_f16(x / 4) : hn_f32_to_bf16(x / 4);
  }
  hn_value *v = net_constant(m, type, 2, (const int64_t[]){rows, columns}, w);
  free(w);
  return v;
}

/* Rows of a table through a MatMul and a Gemm, whose weights lie the other way about. */
static hn_model *network(hone_dtype type, int64_t rows, bool turned) {
  hn_model *m = net_begin();
  hn_value *ids = net_input(m, "ids", HONE_DTYPE_I64, 1, &rows);
  hn_value *x = net_op(m, "Gather", (hn_value *[]){halves(m, type, ROWS, K, 1), ids}, 2), *w;
  if (turned) {
    w = halves(m, type, N, K, 2);
    w = net_op(m, "Transpose", &w, 1);
  } else {
    w = halves(m, type, K, N, 2);
  }
  hn_value *h = net_op(m, "MatMul", (hn_value *[]){x, w}, 2);
  h = net_op(m, "Relu", &h, 1);
  const float bias[K] = {1, -1, 0.5f};
  hn_value *b = net_constant(m, HONE_DTYPE_F32, 1, (const int64_t[]){K}, bias);
  b = net_op(m, "Cast", &b, 1);
  assert_true(hn_node_set_int(b->producer, "to", type));
  hn_value *y = net_op(m, "Gemm", (hn_value *[]){h, halves(m, type, K, N, 3), b}, 3);
  assert_true(hn_node_set_int(y->producer, "transB", 1));
  y = net_op(m, "Cast", &y, 1);
  assert_true(hn_node_set_int(y->producer, "to", HONE_DTYPE_F32));
  net_finish(m, y);
  return m;
}

/* In f32, whatever the file has. */
static net_session open(hn_model *m) {
  net_session s = {.model = m};
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 2}, &s.engine, &e), HONE_OK);
  const hone_plan_options o = {.level = 2, .precision = "f32"};
  assert_int_equal(hone_plan_create(s.engine, m, &o, &s.plan, &e), HONE_OK);
  assert_int_equal(hone_context_create(s.plan, &s.context, &e), HONE_OK);
  return s;
}

static void run(const net_session *s, int64_t rows, float *y) {
  int64_t ids[MOST];
  hone_error e = {0};
  for (int64_t i = 0; i < rows; i++) ids[i] = i * 37 % ROWS - (i % 2 ? ROWS : 0);
  const hone_tensor in = {hone_desc(HONE_DTYPE_I64, 1, &rows), ids};
  assert_int_equal(hone_context_run(s->context, (const hone_tensor *[]){&in}, NULL, &e), HONE_OK);
  memcpy(y, hone_context_output(s->context, 0)->data, (size_t)(rows * K) * sizeof *y);
}

/* A saved plan has the products' weights as they are packed, and nothing else of them. */
static void saved_is_the_same(net_session *s, int64_t rows, const float *want) {
  static float got[MOST * K];
  char path[128];
  hone_error e = {0};
  const int fd = mkstemp(temporary(path, sizeof path, "hone-halves"));
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(hone_plan_save(s->plan, path, &e), HONE_OK);
  net_session again = {.engine = s->engine};
  if (hone_plan_open(s->engine, path, &again.plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  assert_int_equal(hone_context_create(again.plan, &again.context, &e), HONE_OK);
  run(&again, rows, got);
  assert_memory_equal(got, want, (size_t)(rows * K) * sizeof *got);
  hone_context_destroy(again.context);
  hone_plan_destroy(again.plan);
  unlink(path);
}

static void check(hone_dtype type, int64_t rows, bool turned) {
  static float want[MOST * K], got[MOST * K];
  net_session plain = net_open(network(type, rows, turned), 2, true, 1),
              s = open(network(type, rows, turned));
  run(&plain, rows, want);
  run(&s, rows, got);
  double most = 0, off = 0;
  for (int64_t i = 0; i < rows * K; i++) {
    most = fmax(most, fabs((double)want[i]));
    off = fmax(off, fabs((double)want[i] - (double)got[i]));
  }
  /* The reference rounds to 16 bits after each operator. */
  assert_true(most > 0.1 && off <= most * (type == HONE_DTYPE_F16 ? 0x1p-8 : 0x1p-5));
  uint32_t products = 0;
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    hone_step_info info;
    assert_true(hone_plan_step(s.plan, i, &info));
    products += info.tactic && strstr(info.tactic, "_halves") != NULL;
  }
  assert_int_equal(products, 2);
  uint64_t constants = 0;
  hone_plan_memory(s.plan, NULL, &constants, NULL);
  assert_true(constants < (uint64_t)(ROWS * K + 2 * K * N) * 3); /* bytes; 4 of them a weight in f32 */
  net_close(&plain);
  saved_is_the_same(&s, rows, got);
  net_close(&s);
}

static void weights_stay_halves(void **state) {
  static const int64_t rows[] = {1, 5, MOST};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int turned = 0; turned < 2; turned++) {
      check(HONE_DTYPE_F16, rows[i], turned);
      check(HONE_DTYPE_BF16, rows[i], turned);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(weights_stay_halves)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
