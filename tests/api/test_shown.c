/* Weights that a file has as Constant nodes are the plan's constants where they lie in the file, at whatever
 * alignment, and give what the reference gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "temporary.h"

#include "api/api.h"
#include "optimize/plan/plan.h"

#include <hone/model.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 4, K = 160, N = 130 }; /* more than stays unaligned for its size alone */

static const char text[] = "ir 8\nopset 17\ngraph g(%x: f32[4x160]) -> (%z) {\n"
                           "  %w = Constant() {value=f32[160x130] rand(3, -1, 1)}\n"
                           "  %s = Constant() {value_ints=[4, 2, 65]}\n"
                           "  %t = Constant() {value=f32[65] rand(5, 1, 2)}\n"
                           "  %p = MatMul(%x, %w)\n  %y = Reshape(%p, %s)\n  %z = Mul(%y, %t)\n}\n";

static const hn_value *value(const hn_model *m, const char *name) {
  const hn_graph *g = m->graph;
  for (size_t i = 0; i < g->values.len; i++)
    if (strcmp(g->values.ptr[i]->name, name) == 0) return g->values.ptr[i];
  fail_msg("no value %s", name);
  return NULL;
}

static bool in_file(const hn_model *m, const void *p) {
  for (; m; m = m->borrowed_from)
    for (size_t i = 0; i < m->files.len; i++) {
      const uint8_t *at = m->files.ptr[i].data;
      if ((const uint8_t *)p >= at && (const uint8_t *)p < at + m->files.ptr[i].size) return true;
    }
  return false;
}

static void run(net_session *s, const float *x, float *out) {
  const hone_tensor in = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){ROWS, K}), (void *)(uintptr_t)x};
  hone_error e = {0};
  if (hone_context_run(s->context, (const hone_tensor *[]){&in}, NULL, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  memcpy(out, hone_context_output(s->context, 0)->data, sizeof(float) * ROWS * N);
}

/* A producer's name of another length moves everything behind it. */
static hn_model *shifted(const char *folder, int by, char *path, size_t size) {
  hn_model *m = net_parse("text", text), *loaded = NULL;
  hone_error e = {0};
  m->producer = &"xxxxxxxx"[8 - by];
  snprintf(path, size, "%s/m%d.onnx", folder, by);
  if (hone_model_save(m, path, &e) != HONE_OK || hone_model_load(path, &loaded, &e) != HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  hone_model_release(m);
  return loaded;
}

static void constants_lie_in_the_file(void **state) {
  (void)state;
  char folder[512], path[600];
  static float x[ROWS * K], want[ROWS * N], got[ROWS * N];
  uint32_t places = 0;
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "hone-shown")));
  for (int i = 0; i < ROWS * K; i++) x[i] = 0.01f * (float)(i % 37 - 18);
  for (int by = 0; by < 4; by++) {
    hn_model *m = shifted(folder, by, path, sizeof path);
    const hone_tensor *shown = hn_constant_shown(value(m, "w")->producer);
    assert_non_null(shown);
    assert_true(in_file(m, shown->data));
    places |= 1u << (uintptr_t)shown->data % 4;
    assert_null(hn_constant_shown(value(m, "s")->producer));
    net_session r = net_open(hn_model_retain(m), 0, true, 1), s = net_open(m, 2, false, 1);
    run(&r, x, want);
    run(&s, x, got);
    for (int i = 0; i < ROWS * N; i++) {
      /* |x| < 0.19, |w| <= 1, |t| <= 2: a rounding for each term, on both sides. */
      assert_true(fabsf(got[i] - want[i]) <= 2 * 0.19f * K * 2 * (K + 1) * 0x1p-24f);
    }
    net_close(&r);
    net_close(&s);
  }
  assert_int_equal(places, 15);
  assert_int_equal(temporary_remove(folder), 0);
}

/* Planning shows the same bytes: nothing is copied. */
static void a_plan_takes_them_as_they_are(void **state) {
  (void)state;
  hn_model *m = net_parse("text", text);
  const hone_tensor *shown = hn_constant_shown(value(m, "t")->producer);
  const float *at = shown->data;
  for (int level = 0; level <= 2; level += 2) {
    net_session s = net_open(hn_model_retain(m), level, false, 1);
    const hn_value *t = value(hn_api_plan_inside(s.plan)->model, "t");
    assert_non_null(t->constant);
    assert_ptr_equal(t->constant->data, at);
    net_close(&s);
  }
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(constants_lie_in_the_file),
      cmocka_unit_test(a_plan_takes_them_as_they_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
