/* What right answers may be behind a rounding, of small networks (improve/roundings.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "improve/roundings.h"
#include "net.h"

#include <stdio.h>

static const hone_tensor *given(const void *arg, const hn_value *value) {
  return value->is_input ? arg : NULL;
}
static const hone_tensor *unnamed(const void *arg, const hn_value *value) {
  (void)arg, (void)value;
  return NULL;
}

/* 4 elements halfway between levels: each may fall either way. `got` was made with all of them up but the
 * last, the reference with all of them down. */
static hn_right judge(const char *name, const char *last, uint64_t deadline_ns, hone_status wanted) {
  char text[600];
  float x[] = {0.5f, 1.5f, 2.5f, 3.5f}, up[] = {1, 2, 3, 3}, down[] = {0, 1, 2, 3};
  const hone_tensor in = {hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){2, 1, 2}), x}, got = {in.desc, up},
                    reference = {in.desc, down};
  snprintf(text, sizeof text,
           "opset 17\ngraph g(%%x: f32[2x1x2]) -> (%%y: f32[2x1x2]) {\n"
           "  const %%one: f32[1] = {1}\n  const %%zero: f32[1] = {0}\n"
           "  %%a = Abs(%%x)\n  %%q = QuantizeLinear(%%a, f32 1, u8 0)\n  %%d = DequantizeLinear(%%q, f32 1, "
           "u8 0)\n"
           "  %s\n}\n",
           last);
  hn_model *m = net_parse(name, text);
  const hn_seen_values known = {.of = given, .named = unnamed, .arg = &in, .slack = 1e-6};
  hn_right right;
  hn_budget budget = {.deadline_ns = deadline_ns};
  hone_error e = {0};
  assert_int_equal(
      hn_right_answers(&known, m->graph->outputs.ptr[0], &got, &reference, 1e-6, &budget, &right, &e),
      wanted);
  hone_model_release(m);
  return right;
}

/* Choices that push all roundings alike are all there are where each element depends on its own alone. */
static void complete(void **state) {
  (void)state;
  hn_right r = judge("pointwise", "%y = Identity(%d)", 0, HONE_OK);
  assert_true(r.seen && r.complete);
  assert_int_equal(r.wrong, 0);
  r = judge("inference", "%y = BatchNormalization(%d, %one, %zero, %zero, %one) {epsilon=0.0}", 0, HONE_OK);
  assert_true(r.seen && r.complete);
  assert_int_equal(r.wrong, 0);
  r = judge("training",
            "%y, %mean, %var = BatchNormalization(%d, %one, %zero, %zero, %one) {training_mode=1}", 0,
            HONE_OK);
  assert_true(r.seen && !r.complete); /* the mean of the batch depends on all of them */
}

/* What there was no time to judge is no fault. */
static void late(void **state) {
  (void)state;
  const hn_right r = judge("late", "%y = Identity(%d)", 1, HONE_ERROR_BUDGET);
  assert_int_equal(r.wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(complete), cmocka_unit_test(late)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
