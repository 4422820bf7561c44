/* What lowering and the memory plan make of graphs that once went wrong or slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { C = 24, H = 20, W = 29, COUNT = C * H * W }; /* several tiles of a pointwise step */

static hn_value *conv(hn_model *m, hn_value *x, unsigned seed) {
  return net_op(m, "Conv", (hn_value *[]){x, net_weights(m, 4, (const int64_t[]){C, C, 1, 1}, seed)}, 2);
}

static hn_value *image(hn_model *m) {
  return net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, C, H, W});
}

static void run(net_session *s, float *out) {
  static float x[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = (float)((i * 37) % 101) / 50.0f - 1.0f;
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, C, H, W}), x};
  const hone_tensor *inputs[] = {&in};
  hone_error e = {0};
  if (hone_context_run(s->context, inputs, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  const hone_tensor *y = hone_context_output(s->context, 0);
  assert_int_equal(hone_desc_count(&y->desc), COUNT);
  memcpy(out, y->data, COUNT * sizeof *out);
}

/* The optimised plan answers as the plain reference does. */
static void assert_right(hn_model *(*build)(void)) {
  static float want[COUNT], got[COUNT];
  net_session s = net_open(build(), 0, true, 1);
  run(&s, want);
  net_close(&s);
  s = net_open(build(), 2, false, 1);
  run(&s, got);
  net_close(&s);
  for (int i = 0; i < COUNT; i++)
    if (!(fabsf(got[i] - want[i]) <= 1e-4f)) fail_msg("element %d is %g, not %g", i, got[i], want[i]);
}

/* Both branches of y = x - reshape(transpose(x)) name the same bytes in different orders: the result must not
 * be written over them. */
static hn_model *two_views(const char *op) {
  hn_model *m = net_begin();
  hn_value *x = conv(m, image(m), 1);
  hn_value *t = net_op(m, "Transpose", &x, 1);
  assert_true(hn_node_set_ints(t->producer, "perm", (const int64_t[]){0, 2, 3, 1}, 4));
  int64_t three = 3;
  hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &three);
  hn_value *shape = hn_value_constant(m->graph, NULL, &d, (const int64_t[]){C, H, W}, true);
  hn_value *y = net_op(m, "Reshape", (hn_value *[]){t, shape}, 2);
  net_finish(m, conv(m, net_op(m, op, (hn_value *[]){x, y}, 2), 2));
  return m;
}
static hn_model *subtract_views(void) { return two_views("Sub"); }
static hn_model *add_views(void) { return two_views("Add"); }

static void views_of_one_memory_are_not_overwritten(void **state) {
  (void)state;
  assert_right(subtract_views);
  assert_right(add_views);
}

/* Exporters from Caffe2 write residual connections as Sum. */
static hn_model *residual_sum(void) {
  hn_model *m = net_begin();
  hn_value *x = net_op(m, "Relu", (hn_value *[]){conv(m, image(m), 1)}, 1);
  hn_value *y = net_op(m, "Sum", (hn_value *[]){conv(m, x, 2), x}, 2);
  net_finish(m, net_op(m, "Relu", &y, 1));
  return m;
}

static void a_sum_of_two_joins_its_convolution(void **state) {
  (void)state;
  assert_right(residual_sum);
  net_session s = net_open(residual_sum(), 2, false, 1);
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    hone_step_info info;
    assert_true(hone_plan_step(s.plan, i, &info));
    assert_string_not_equal(info.op_type, "Pointwise");
  }
  net_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(views_of_one_memory_are_not_overwritten),
      cmocka_unit_test(a_sum_of_two_joins_its_convolution),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
