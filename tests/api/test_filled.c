/* Weights that ConstantOfShape fills with one number: constants of a plan share their bytes, which go when
 * all are packed, but not while a nested graph reads one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "api/api.h"
#include "model/ir/bytes.h"
#include "optimize/plan/plan.h"

#include <math.h>
#include <string.h>

enum { ROWS = 8, C = 600, WIDE = 640, LESS = 500 };

/* Products with weights of 0.25, of which the first to be made are fewer. All are larger than what is left in
 * memory for a while (plan/pack.c). */
#define PRODUCTS                                                                                             \
  "  %d = ConstantOfShape(i64[2]{600, 500}) {value=f32[1]{0.25}}\n"                                          \
  "  %a = ConstantOfShape(i64[2]{600, 640}) {value=f32[1]{0.25}}\n"                                          \
  "  %b = ConstantOfShape(i64[2]{640, 600}) {value=f32[1]{0.25}}\n"                                          \
  "  %p = MatMul(%x, %a)\n"                                                                                  \
  "  %q = MatMul(%p, %b)\n"                                                                                  \
  "  %r = MatMul(%q, %d)\n"

/* And one of others. */
static const char plain[] = "ir 8\nopset 17\ngraph g(%x: f32[8x600]) -> (%y) {\n" PRODUCTS
                            "  %e = ConstantOfShape(i64[2]{500, 600}) {value=f32[1]{0.5}}\n"
                            "  %y = MatMul(%r, %e)\n}\n";

/* A branch reads a row of the last of them. */
static const char nested[] =
    "ir 8\nopset 17\ngraph g(%x: f32[8x600], %c: bool[], %k: i64[]) -> (%y) {\n" PRODUCTS
    "  %y = If(%c) {then_branch=graph t() -> (%u) { %u = Neg(%r) }, else_branch=graph e() -> (%v) {\n"
    "    %w = Gather(%d, %k)\n    %v = Sub(%r, %w) }}\n}\n";

static const hn_value *value(const hn_model *m, const char *name) {
  const hn_graph *g = m->graph;
  for (size_t i = 0; i < g->values.len; i++)
    if (strcmp(g->values.ptr[i]->name, name) == 0 && g->values.ptr[i]->constant) return g->values.ptr[i];
  fail_msg("no constant %s", name);
  return NULL;
}

static uint32_t filled(const hn_model *m) {
  uint32_t n = 0;
  for (const hn_filled *f = m->filled; f; f = f->next) n++;
  return n;
}

/* Runs it on rows of one number each, of which every element of the result follows: times `by`, less `less`.
 */
static void check(net_session *s, double by, double less) {
  static float x[ROWS * C];
  const bool no = false;
  const int64_t row = C - 1;
  for (int i = 0; i < ROWS * C; i++) x[i] = 0.001f * (float)(1 + i / C);
  const hone_tensor in[3] = {{hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){ROWS, C}), x},
                             {hone_desc(HONE_DTYPE_BOOL, 0, NULL), (void *)(uintptr_t)&no},
                             {hone_desc(HONE_DTYPE_I64, 0, NULL), (void *)(uintptr_t)&row}};
  hone_error e = {0};
  if (hone_context_run(s->context, (const hone_tensor *[]){&in[0], &in[1], &in[2]}, NULL, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  const hone_tensor *y = hone_context_output(s->context, 0);
  const int64_t columns = y->desc.dim[1];
  for (int64_t i = 0; i < ROWS * columns; i++) {
    const double want = by * x[i / columns * C] - less;
    /* A rounding for each term of each sum, none of them the larger for the others. */
    const double bound = (fabs(want) + less) * (2.0 * C + WIDE + LESS + 2) * 0x1p-24;
    assert_true(fabs(((const float *)y->data)[i] - want) <= bound);
  }
}

static const double THREE = 0.25 * C * 0.25 * WIDE * 0.25 * C; /* the products, of a row's number */

static void equal_weights_share_bytes_that_go_with_the_last(void **state) {
  (void)state;
  net_session s = net_open(net_parse("text", plain), 2, false, 1);
  const hn_model *m = hn_api_plan_inside(s.plan)->model;
  assert_int_equal(filled(m), 2);
  static const char *const names[] = {"a", "b", "d", "e"};
  for (int i = 0; i < 4; i++) assert_null(value(m, names[i])->constant->data);
  check(&s, THREE * 0.5 * LESS, 0);
  net_close(&s);
}

static void a_nested_graph_keeps_them(void **state) {
  (void)state;
  net_session s = net_open(net_parse("text", nested), 2, false, 1);
  const hn_model *m = hn_api_plan_inside(s.plan)->model;
  const float *d = value(m, "d")->constant->data;
  assert_int_equal(filled(m), 1);
  assert_true(d && d[0] == 0.25f && d[C * LESS - 1] == 0.25f);
  check(&s, THREE, 0.25);
  net_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_weights_share_bytes_that_go_with_the_last),
      cmocka_unit_test(a_nested_graph_keeps_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
