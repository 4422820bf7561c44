/* Rehearsal: which steps of a preview are timed, what is left out, how time and the caller end it. Tactics
 * are planted; they wait, so that the least a step can take is known on any machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "backends/cpu/backend.h"
#include "backends/cpu/tactics.h"
#include "base/os.h"
#include "improve/kernel_speeds.h"
#include "improve/rehearse.h"
#include "optimize/plan/plan.h"
#include "temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDE_US = 300, NARROW_US = 100, MOST_STEPS = 16 };

static unsigned runs_wide, runs_narrow;

static bool is_wide(const hone_step *s) { return s->input[0].desc.dim[2] == 24; }

static double cost(const hone_step *s, const hone_machine *m) {
  (void)m;
  return is_wide(s) ? 2e-4 : 1e-4;
}

static hone_status run_planted(const hone_step_run *r, hone_error *e) {
  const bool wide = is_wide(r->step);
  const uint64_t end = hn_now_ns() + (wide ? WIDE_US : NARROW_US) * 1000u;
  *(wide ? &runs_wide : &runs_narrow) += 1;
  while (hn_now_ns() < end) {
  }
  return hn_cpu_tactic_max_pool.run(r, e);
}

static hone_tactic_desc tactic;
static const void *const planted[] = {&tactic};
static hn_registry planted_tactics = HN_REGISTRY(&hn_tactic_kind, planted);

typedef struct bench {
  hn_backend backend;
  hn_device *device;
  hn_plan *plan;
  uint32_t pools;
} bench;

static hn_value *pool(hn_model *m, hn_value *x, int64_t stride) {
  hn_value *y = net_op(m, "MaxPool", &x, 1);
  hn_node_set_ints(y->producer, "kernel_shape", (const int64_t[]){3, 3}, 2);
  hn_node_set_ints(y->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4);
  hn_node_set_ints(y->producer, "strides", (const int64_t[]){stride, stride}, 2);
  return y;
}

/* Two equal MaxPools, a third that halves, and a fourth on the smaller image: three works. */
static void bench_open(bench *b, bool preview) {
  *b = (bench){.backend = hn_backend_cpu};
  hone_error e = {0};
  b->backend.tactics = &planted_tactics;
  assert_int_equal(b->backend.open(0, 1, NULL, &b->device, &e), HONE_OK);
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 8, 24, 24});
  x = pool(m, pool(m, pool(m, pool(m, x, 1), 1), 2), 1);
  net_finish(m, x);
  hn_plan_request r = {
      .backend = &b->backend, .device = b->device, .model = m, .level = 1, .preview = preview};
  if (hn_plan_build(&r, &b->plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  hn_model_destroy(m);
  for (size_t i = 0; i < b->plan->steps.len; i++) b->pools += b->plan->steps.ptr[i].tactic == &tactic;
  assert_true(b->pools == 4 && b->plan->steps.len <= MOST_STEPS);
  runs_wide = runs_narrow = 0;
}

static void bench_close(bench *b) {
  hn_plan_free(b->plan);
  b->backend.close(b->device);
}

static int setup(void **state) {
  (void)state;
  tactic = hn_cpu_tactic_max_pool;
  tactic.name = "planted", tactic.cost = cost, tactic.run = run_planted;
  return 0;
}

static void every_new_step_is_timed(void **state) {
  (void)state;
  bench b;
  bench_open(&b, true);
  double seconds[MOST_STEPS];
  hone_rehearsal r;
  hone_error e = {0};
  const hone_rehearsal_options o = {.max_seconds = 100};
  if (hn_rehearse(b.plan, NULL, &o, seconds, &r, &e) != HONE_OK) fail_msg("%s", e.what);
  assert_int_equal(r.steps, 4);
  assert_int_equal(r.timed, 4);
  assert_true(r.seconds > 0);
  double last = 0;
  for (size_t i = 0; i < b.plan->steps.len; i++) {
    const hn_step *s = &b.plan->steps.ptr[i];
    if (s->tactic != &tactic) {
      assert_true(seconds[i] == 0); /* a change of layout that another device's tactic would do */
      continue;
    }
    assert_true(seconds[i] >= (is_wide(&s->desc) ? WIDE_US : NARROW_US) * 0.99e-6);
    if (s->desc.output[0].desc.dim[2] == 24 && last > 0) assert_true(seconds[i] == last); /* the same work */
    last = seconds[i];
  }
  bench_close(&b);
}

/* What the measured plan has, was seen in its place there. */
static void known_steps_are_not(void **state) {
  (void)state;
  bench before, b;
  bench_open(&before, false);
  bench_open(&b, true);
  double seconds[MOST_STEPS];
  hone_rehearsal r;
  hone_error e = {0};
  const hone_rehearsal_options o = {.max_seconds = 100};
  assert_int_equal(hn_rehearse(b.plan, before.plan, &o, seconds, &r, &e), HONE_OK);
  assert_int_equal(r.steps, 0);
  assert_int_equal(r.timed, 0);
  assert_int_equal(runs_wide + runs_narrow, 0);
  for (size_t i = 0; i < b.plan->steps.len; i++) assert_true(seconds[i] == 0);
  bench_close(&b);
  bench_close(&before);
}

/* No step is begun that has no time left, and none that was begun goes on beyond its warm-up. */
static void time_ends_it(void **state) {
  (void)state;
  bench b;
  bench_open(&b, true);
  double seconds[MOST_STEPS];
  hone_rehearsal r;
  hone_error e = {0};
  hone_rehearsal_options o = {.max_seconds = 1e-9};
  assert_int_equal(hn_rehearse(b.plan, NULL, &o, seconds, &r, &e), HONE_OK);
  assert_int_equal(r.steps, 4);
  assert_int_equal(r.timed, 0);
  assert_int_equal(runs_wide + runs_narrow, 0);
  o.max_seconds = 5e-4; /* by its model the wide one does not fit, and four runs of the narrow one do */
  assert_int_equal(hn_rehearse(b.plan, NULL, &o, seconds, &r, &e), HONE_OK);
  assert_int_equal(runs_wide, 0);
  for (size_t i = 0; i < b.plan->steps.len; i++)
    assert_true(b.plan->steps.ptr[i].tactic != &tactic || !is_wide(&b.plan->steps.ptr[i].desc) ||
                seconds[i] < 0);
  assert_true(runs_narrow <= 5);
  bench_close(&b);
}

static bool after_ten(void *arg) { return ++*(unsigned *)arg < 10; }

static void the_caller_ends_it(void **state) {
  (void)state;
  bench b;
  bench_open(&b, true);
  double seconds[MOST_STEPS];
  unsigned asked = 0;
  hone_rehearsal r;
  hone_error e = {0};
  const hone_rehearsal_options o = {.max_seconds = 100, .progress = after_ten, .progress_arg = &asked};
  assert_int_equal(hn_rehearse(b.plan, NULL, &o, seconds, &r, &e), HONE_ERROR_CANCELLED);
  assert_int_equal(asked, 10);
  for (size_t i = 0; i < b.plan->steps.len; i++) assert_true(seconds[i] == 0);
  bench_close(&b);
}

/* By the public function: the preview's steps with their times, and what may not be NULL. */
static void facts_hold_the_times(void **state) {
  (void)state;
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 8, 12, 12});
  net_finish(m, pool(m, x, 1));
  net_session s = net_open(m, 2, false, 1);
  hone_facts *f = hone_facts_create();
  hone_rehearsal r;
  hone_error e = {0};
  assert_int_equal(hone_plan_rehearse(NULL, NULL, NULL, f, &r, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_plan_rehearse(s.plan, NULL, NULL, NULL, &r, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_plan_rehearse(s.plan, NULL, NULL, f, NULL, &e), HONE_ERROR_USAGE);
  size_t n;
  hone_facts_preview_steps(f, &n);
  assert_int_equal(n, 0);
  const hone_rehearsal_options o = {.max_seconds = 100};
  assert_int_equal(hone_plan_rehearse(s.plan, NULL, &o, f, &r, &e), HONE_OK);
  const hone_preview_step *p = hone_facts_preview_steps(f, &n);
  assert_int_equal(n, hone_plan_steps(s.plan));
  uint32_t timed = 0;
  for (size_t i = 0; i < n; i++) timed += p[i].timed_ms > 0;
  assert_true(timed > 0);
  assert_int_equal(timed, r.timed);
  hone_facts_destroy(f);
  net_close(&s);
}

/* ------------------------------------------------------------------ kernels */

static void sums_of(hn_kernel_sums *sums, double factor) {
  *sums = (hn_kernel_sums){.count = 2};
  sums->kernel[0].tactic = "one";
  sums->kernel[0].measured[HONE_KERNEL_OWN_CACHES] = factor * 2e-3;
  sums->kernel[0].model[HONE_KERNEL_OWN_CACHES] = 2e-3;
  sums->kernel[1].tactic = "two";
  sums->kernel[1].measured[HONE_KERNEL_MEMORY] = 3e-3;
  sums->kernel[1].model[HONE_KERNEL_MEMORY] = 1e-3;
}

/* A run that says about the same changes nothing; one that contradicts replaces what was known. */
static void runs_teach(void **state) {
  (void)state;
  hone_kernel_speeds k = {0};
  hn_kernel_sums sums;
  sums_of(&sums, 0.5);
  assert_int_equal(hn_kernel_speeds_learn(&k, &sums), 2);
  assert_int_equal(k.count, 2);
  sums_of(&sums, 0.5 * (1 + 0.9 * HONE_KERNELS_DIFFER));
  assert_int_equal(hn_kernel_speeds_learn(&k, &sums), 0);
  assert_true(hn_kernel_factor(&k, "one", HONE_KERNEL_OWN_CACHES) == 0.5);
  sums_of(&sums, 0.5 * (1 + 1.1 * HONE_KERNELS_DIFFER));
  assert_int_equal(hn_kernel_speeds_learn(&k, &sums), 1);
  assert_true(hn_kernel_factor(&k, "one", HONE_KERNEL_OWN_CACHES) > 0.6);
  /* the nearest place speaks for one that was not seen; nothing speaks for an unknown kernel */
  assert_true(hn_kernel_factor(&k, "two", HONE_KERNEL_OWN_CACHES) == 3);
  assert_true(hn_kernel_factor(&k, "three", HONE_KERNEL_OWN_CACHES) == 0);
  /* an earlier measurement speaks where a new one did not see the kernel */
  hone_kernel_speeds fresh = {.count = 1,
                              .kernel = {{.tactic = "one", .factor = {[HONE_KERNEL_OWN_CACHES] = 7}}}};
  hn_kernel_speeds_fill(&fresh, &k);
  assert_true(hn_kernel_factor(&fresh, "one", HONE_KERNEL_OWN_CACHES) == 7);
  assert_true(hn_kernel_factor(&fresh, "two", HONE_KERNEL_MEMORY) == 3);
  assert_int_equal(k.count, 2);
}

static char folder[256];

static void kernels_are_kept(void **state) {
  (void)state;
  const char *old = getenv("XDG_CACHE_HOME");
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "hone-kernels")));
  char *was = old ? strdup(old) : NULL;
  setenv("XDG_CACHE_HOME", folder, 1);
  bench b;
  bench_open(&b, true);
  hone_kernel_speeds k = {0}, again;
  hn_kernel_sums sums;
  sums_of(&sums, 0.5);
  hn_kernel_speeds_learn(&k, &sums);
  assert_false(hn_kernel_speeds_read(&b.backend, b.device, &again));
  hn_kernel_speeds_write(&b.backend, b.device, &k);
  assert_true(hn_kernel_speeds_read(&b.backend, b.device, &again));
  assert_true(again.cached);
  assert_int_equal(again.count, 2);
  assert_memory_equal(again.kernel, k.kernel, 2 * sizeof *k.kernel);
  /* whatever a plugin calls its tactics */
  hone_kernel_speeds odd = {
      .count = 3,
      .kernel = {{.tactic = "a b\n%20|\xc3\xa9", .factor = {1, 2, 3}},
                 {.tactic = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
                            "\n\n\n\n\n\n\n\n\n\n\n\n\n",
                  .factor = {4, 5, 6}},
                 {.tactic = "plain", .factor = {7, 8, 9}}}};
  hn_kernel_speeds_write(&b.backend, b.device, &odd);
  assert_true(hn_kernel_speeds_read(&b.backend, b.device, &again));
  assert_int_equal(again.count, 3);
  assert_memory_equal(again.kernel, odd.kernel, 3 * sizeof *odd.kernel);
  /* another thread count is another machine */
  hn_device *two = NULL;
  hone_error e = {0};
  assert_int_equal(b.backend.open(0, 2, NULL, &two, &e), HONE_OK);
  assert_false(hn_kernel_speeds_read(&b.backend, two, &again));
  assert_int_equal(again.count, 0);
  b.backend.close(two);
  /* what steps of a plan took is kept by their tactic */
  double seconds[MOST_STEPS] = {0};
  for (size_t i = 0; i < b.plan->steps.len; i++)
    if (b.plan->steps.ptr[i].tactic == &tactic) seconds[i] = 4 * b.plan->steps.ptr[i].predicted_s;
  hn_kernel_sums taken = {0};
  hn_kernel_sums_add(&taken, b.plan, seconds);
  assert_int_equal(taken.count, 1);
  assert_int_equal(hn_kernel_speeds_learn(&k, &taken), 1);
  const double factor = hn_kernel_factor(&k, "planted", HONE_KERNEL_OWN_CACHES);
  assert_true(factor > 3.999 && factor < 4.001);
  bench_close(&b);
  if (was)
    setenv("XDG_CACHE_HOME", was, 1);
  else
    unsetenv("XDG_CACHE_HOME");
  free(was);
  assert_int_equal(temporary_remove(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_new_step_is_timed),
      cmocka_unit_test(known_steps_are_not),
      cmocka_unit_test(time_ends_it),
      cmocka_unit_test(the_caller_ends_it),
      cmocka_unit_test(facts_hold_the_times),
      cmocka_unit_test(runs_teach),
      cmocka_unit_test(kernels_are_kept),
  };
  return cmocka_run_group_tests(tests, setup, NULL);
}
