/* A loop with a limit ends near it, by a clock of the test's own: each look at it is a moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hone/hone.h>

#include <stdatomic.h>
#include <stdio.h>

enum { NODES = 152 }; /* of mobilenetv2 */

static _Atomic uint64_t now_ns;
static uint64_t moment_ns;

uint64_t __wrap_hn_now_ns(void);
uint64_t __wrap_hn_now_ns(void) { return atomic_fetch_add(&now_ns, moment_ns) + moment_ns; }

/* Seconds that the loop took; whether it came to its end. */
static double loop_seconds(double limit, bool *ended) {
  static hone_loop l;
  hone_model *model = NULL;
  hone_engine *engine = NULL;
  hone_error e = {0};
  hone_peaks peaks = {.cpu = {.threads = 1, .f32_gflops = 1e6, .dram_gbs = 1e6}, .threads = 1};
  assert_int_equal(hone_zoo_build("mobilenetv2", &(hone_zoo_options){.size = 32, .width = 0.25}, &model, &e),
                   HONE_OK);
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1, .tuning = "off"}, &engine, &e),
                   HONE_OK);
  const uint64_t start = now_ns;
  const hone_loop_options o = {.peaks = &peaks, .threads = 1, .max_seconds = limit};
  const hone_status status = hone_loop_run(engine, model, &o, &l, &e);
  const double seconds = (double)(now_ns - start) * 1e-9;
  if (status != HONE_OK && status != HONE_ERROR_BUDGET) fail_msg("%s: %s", e.where, e.what);
  *ended = status == HONE_OK;
  hone_loop_free(&l);
  hone_engine_destroy(engine);
  hone_model_release(model);
  return seconds;
}

/* What is under way when time is over comes to its end: a few runs, each of which looks twice a node at the
 * most. */
static void a_limit_is_shared(void **state) {
  (void)state;
  bool ended;
  for (int ms = 1; ms <= 8; ms *= 8) {
    moment_ns = (uint64_t)ms * 1000000;
    const double runs = 4 * 2 * NODES * ms * 1e-3;
    for (double limit = 5; limit <= 80; limit *= 4) {
      const double seconds = loop_seconds(limit, &ended);
      assert_true(seconds <= limit + runs);
    }
  }
}

/* With time enough it comes to its end. */
static void enough_time_is_enough(void **state) {
  (void)state;
  bool ended;
  moment_ns = 1000000;
  const double usual = loop_seconds(0, &ended);
  assert_true(ended);
  loop_seconds(6 * usual, &ended);
  assert_true(ended);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_limit_is_shared),
                                     cmocka_unit_test(enough_time_is_enough)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
