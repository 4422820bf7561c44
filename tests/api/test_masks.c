/* Masks of tactics (HONE_TACTICS, an engine's option): each must fit a tactic of some device, and all that
 * plans as for users heeds them. */
#include "improve/side.h"
#include "net.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include <hone/improve.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hn_model *pool(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 8, 24, 24});
  hn_value *y = net_op(m, "MaxPool", &x, 1);
  hn_node_set_ints(y->producer, "kernel_shape", (const int64_t[]){3, 3}, 2);
  net_finish(m, y);
  return m;
}

static hone_status engine_with(const char *masks, hone_error *e) {
  hone_engine *engine = NULL;
  *e = (hone_error){0};
  const hone_engine_options o = {.threads = 1, .tactics = masks, .tuning = "off"};
  const hone_status status = hone_engine_create(&o, &engine, e);
  hone_engine_destroy(engine);
  return status;
}

static void what_fits_nothing_is_an_error(void **state) {
  (void)state;
  static const char *const good[] = {
      "", ",", "max_pool", "conv_*,-*_chain*", "-cudnn*,-cublaslt*", "-max_pool,", "*", "-conv_winograd*"};
  static const struct {
    const char *masks, *named;
  } bad[] = {{"conv_winogard*", "'conv_winogard*'"},
             {"-conv_winogard*", "'-conv_winogard*'"},
             {"max_pool,cnov*", "'cnov*'"},
             {"-", "'-'"},
             {"max_pool, conv_*", "' conv_*'"}};
  hone_error e;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    if (engine_with(good[i], &e) != HONE_OK) fail_msg("'%s': %s", good[i], e.what);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(engine_with(bad[i].masks, &e), HONE_ERROR_USAGE);
    if (!strstr(e.what, bad[i].named) || !strstr(e.where, "tactics")) fail_msg("%s: %s", e.where, e.what);
  }
  char lengthy[400];
  memset(lengthy, 'x', sizeof lengthy);
  lengthy[sizeof lengthy - 1] = 0;
  assert_int_equal(engine_with(lengthy, &e), HONE_ERROR_USAGE);
  assert_int_equal(setenv("HONE_TACTICS", "conv_wino,max_pool", 1), 0);
  assert_int_equal(engine_with(NULL, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.where, "HONE_TACTICS");
  assert_int_equal(engine_with("max_pool", &e), HONE_OK); /* it counts more */
  hn_model *m = pool();
  hone_verify_result r;
  assert_int_equal(hone_verify(m, NULL, &(hone_verify_options){.inputs = 1, .threads = 1}, &r, &e),
                   HONE_ERROR_USAGE);
  assert_string_equal(e.where, "HONE_TACTICS");
  assert_int_equal(unsetenv("HONE_TACTICS"), 0);
  hone_model_release(m);
}

/* How many steps of what is compared run the tactic. */
static int steps_by(hn_model *m, const char *tactic) {
  hn_side side;
  hone_error e = {0};
  int n = 0;
  if (hn_side_open(m, &(hn_side_options){.level = 2, .threads = 1}, &side, &e) != HONE_OK)
    fail_msg("%s", e.what);
  for (size_t i = 0; i < side.plan->steps.len; i++) {
    const hone_tactic_desc *t = side.plan->steps.ptr[i].tactic;
    n += t && strcmp(t->name, tactic) == 0;
  }
  hn_side_close(&side);
  return n;
}

/* hone verify judges the plan that hone run would have. */
static void comparisons_heed_them(void **state) {
  (void)state;
  hn_model *m = pool();
  assert_int_equal(steps_by(m, "max_pool"), 1);
  assert_int_equal(setenv("HONE_TACTICS", "-max_pool", 1), 0);
  assert_int_equal(steps_by(m, "max_pool"), 0);
  assert_int_equal(unsetenv("HONE_TACTICS"), 0);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_fits_nothing_is_an_error),
                                     cmocka_unit_test(comparisons_heed_them)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
