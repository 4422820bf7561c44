/* Tuning: planted tactics whose speed is known, the table of choices, its file, and what plans make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "temporary.h"
#include "net.h"
#include "backends/cpu/backend.h"
#include "backends/cpu/tactics.h"
#include "base/os.h"
#include "improve/tune.h"
#include "model/operators.h"
#include "optimize/plan/plan.h"
#include "optimize/step/tuned.h"
#include "runtime/context.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static const char *file(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* ------------------------------------------------------------------ planted tactics */

static unsigned slow_us = 400, quick_us = 100;

/* The clock of this program (linked with --wrap=hn_now_ns): planted tactics take what they say, on any
 * machine and beside any neighbour; reading it takes 50 ns. */
static atomic_uint_fast64_t clock_ns = 1000000000;
uint64_t __wrap_hn_now_ns(void);
uint64_t __wrap_hn_now_ns(void) { return atomic_fetch_add(&clock_ns, 50); }

static void wait_us(unsigned us) { atomic_fetch_add(&clock_ns, us * 1000u); }

static double cost_low(const hone_step *s, const hone_machine *m) {
  (void)s, (void)m;
  return 1e-4;
}
static double cost_high(const hone_step *s, const hone_machine *m) {
  (void)s, (void)m;
  return 2e-4;
}
static hone_status run_slow(const hone_step_run *r, hone_error *e) {
  wait_us(slow_us);
  return hn_cpu_tactic_max_pool.run(r, e);
}
static hone_status run_quick(const hone_step_run *r, hone_error *e) {
  wait_us(quick_us);
  return hn_cpu_tactic_max_pool.run(r, e);
}

/* Fast, and forgets the last row of every image. */
static hone_status run_wrong(const hone_step_run *r, hone_error *e) {
  const hone_status status = hn_cpu_tactic_max_pool.run(r, e);
  float *y = r->out[0];
  for (int64_t i = 0, n = hone_desc_bytes(&r->step->output[0].desc) / (int64_t)sizeof *y; i < n; i++)
    if (i / 24 % 24 == 23) y[i] = 0;
  return status;
}

/* The cost models prefer the slow one. */
static hone_tactic_desc slow, quick, wrong;
static const void *const planted[] = {&slow, &quick};
static hn_registry planted_tactics = HN_REGISTRY(&hn_tactic_kind, planted);
static const void *const planted_wrong[] = {&wrong, &slow, &quick};
static hn_registry wrong_tactics = HN_REGISTRY(&hn_tactic_kind, planted_wrong);

/* Two MaxPools of one shape and one of another. */
static hn_model *pools(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 8, 24, 24});
  hn_value *a = net_op(m, "MaxPool", &x, 1), *out[2];
  for (int i = 0; i < 2; i++) {
    out[i] = net_op(m, "MaxPool", i ? &a : &x, 1);
    hn_node_set_ints(out[i]->producer, "kernel_shape", (const int64_t[]){3, 3}, 2);
    hn_node_set_ints(out[i]->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4);
  }
  hn_node_set_ints(a->producer, "kernel_shape", (const int64_t[]){5, 5}, 2);
  hn_node_set_ints(a->producer, "pads", (const int64_t[]){2, 2, 2, 2}, 4);
  assert_true(hn_graph_add_output(m->graph, out[0]));
  net_finish(m, out[1]);
  return m;
}

typedef struct bench {
  hn_backend backend;
  hn_device *device;
  hn_model *model;
} bench;

static bench bench_open(void) {
  bench b = {.backend = hn_backend_cpu, .model = pools()};
  hone_error e = {0};
  b.backend.tactics = &planted_tactics;
  assert_int_equal(b.backend.open(0, 1, NULL, &b.device, &e), HONE_OK);
  return b;
}

static void bench_close(bench *b) {
  hn_model_destroy(b->model);
  b->backend.close(b->device);
}

static hn_plan *plan_with(const bench *b, hn_tuned *table) {
  hn_plan *p = NULL;
  hone_error e = {0};
  hn_model *copy = NULL;
  assert_int_equal(hn_model_clone(b->model, &copy, &e), HONE_OK);
  assert_int_equal(hn_model_ready(copy, &e), HONE_OK);
  hn_plan_request r = {
      .backend = &b->backend, .device = b->device, .model = copy, .level = 1, .tuned = table};
  if (hn_plan_build(&r, &p, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  hn_model_destroy(copy);
  return p;
}

/* How many steps run the tactic. */
static int count_of(const hn_plan *p, const char *tactic) {
  int n = 0;
  for (size_t i = 0; i < p->steps.len; i++)
    n += p->steps.ptr[i].tactic && strcmp(p->steps.ptr[i].tactic->name, tactic) == 0;
  return n;
}

static const hn_step *a_pool(const hn_plan *p) {
  for (size_t i = 0; i < p->steps.len; i++)
    if (p->steps.ptr[i].tactic) return &p->steps.ptr[i];
  fail_msg("no pool");
  return NULL;
}

static int setup(void **state) {
  (void)state;
  slow = quick = wrong = hn_cpu_tactic_max_pool;
  wrong.name = "planted_wrong", wrong.cost = cost_low, wrong.run = run_wrong;
  slow.name = "planted_slow", slow.cost = cost_low, slow.run = run_slow;
  quick.name = "planted_quick", quick.cost = cost_high, quick.run = run_quick;
  return mkdtemp(temporary(folder, sizeof folder, "hone-tune")) ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  return temporary_remove(folder);
}

/* ------------------------------------------------------------------ tests */

static void test_finds_the_faster(void **state) {
  (void)state;
  bench b = bench_open();
  hn_tuned *table = hn_tuned_create("test");
  hone_tune_report r;
  hone_error e = {0};
  hn_plan *p = plan_with(&b, table);
  assert_int_equal(count_of(p, "planted_slow"), 3);
  if (hn_tune(p, table, &(hone_tune_options){0}, &r, &e) != HONE_OK) fail_msg("%s", e.what);
  assert_int_equal(r.n_steps, 2); /* two of the three are the same work */
  assert_int_equal(r.measured, 2);
  assert_int_equal(r.step[0].count + r.step[1].count, 3);
  for (uint32_t i = 0; i < r.n_steps; i++) {
    const hone_tune_step *s = &r.step[i];
    assert_int_equal(s->n_candidates, 2);
    assert_string_equal(s->candidate[s->untuned].tactic, "planted_slow");
    assert_string_equal(s->candidate[s->chosen].tactic, "planted_quick");
    assert_true(s->candidate[s->untuned].median_s > 3.9e-4 && s->candidate[s->untuned].median_s < 4.1e-4);
    assert_true(s->candidate[s->chosen].median_s > 0.9e-4 && s->candidate[s->chosen].median_s < 1.1e-4);
  }
  hn_tune_report_free(&r);
  hn_plan_free(p);
  p = plan_with(&b, table);
  assert_int_equal(count_of(p, "planted_quick"), 3);
  for (size_t i = 0; i < p->steps.len; i++)
    assert_true(p->steps.ptr[i].tuned == (p->steps.ptr[i].tactic != NULL));
  /* what is known is not measured again */
  assert_int_equal(hn_tune(p, table, &(hone_tune_options){0}, &r, &e), HONE_OK);
  assert_int_equal(r.measured, 0);
  assert_int_equal(r.known, 2);
  assert_string_equal(r.step[0].candidate[r.step[0].chosen].tactic, "planted_quick");
  hn_tune_report_free(&r);
  hn_plan_free(p);
  hn_tuned_destroy(table);
  bench_close(&b);
}

static void test_tie_keeps_the_cost_models_choice(void **state) {
  (void)state;
  bench b = bench_open();
  hn_tuned *table = hn_tuned_create("test");
  hone_tune_report r;
  hone_error e = {0};
  slow_us = quick_us = 200;
  hn_plan *p = plan_with(&b, table);
  assert_int_equal(hn_tune(p, table, &(hone_tune_options){0}, &r, &e), HONE_OK);
  for (uint32_t i = 0; i < r.n_steps; i++) assert_int_equal(r.step[i].chosen, r.step[i].untuned);
  slow_us = 400, quick_us = 100;
  hn_tune_report_free(&r);
  hn_plan_free(p);
  hn_tuned_destroy(table);
  bench_close(&b);
}

static void test_margin(void **state) {
  (void)state;
  hn_trial a = {.median = 1.00, .spread = 0.001}, b = {.median = 1.01, .spread = 0.001};
  assert_false(hn_trial_beats(&a, &b)); /* clear, but too little */
  b.median = 1.05;
  assert_true(hn_trial_beats(&a, &b));
  assert_false(hn_trial_beats(&b, &a));
  b.spread = 0.06;
  assert_false(hn_trial_beats(&a, &b)); /* noise */
}

static bool stop_after_first(void *arg, uint32_t done, uint32_t total, double left) {
  (void)left;
  *(uint32_t *)arg = done;
  assert_int_equal(total, 2);
  return done < 1;
}

static void test_stopping_keeps_what_is_measured(void **state) {
  (void)state;
  bench b = bench_open();
  hn_tuned *table = hn_tuned_create("test");
  hone_tune_report r;
  hone_error e = {0};
  uint32_t done = 0;
  hn_plan *p = plan_with(&b, table);
  hone_tune_options o = {.progress = stop_after_first, .progress_arg = &done};
  assert_int_equal(hn_tune(p, table, &o, &r, &e), HONE_OK);
  assert_true(r.stopped);
  assert_int_equal(r.measured, 1);
  assert_int_equal(r.skipped, 1);
  assert_int_equal(hn_tuned_count(table), 1);
  hn_tune_report_free(&r);
  o = (hone_tune_options){.max_seconds = 1e-9}; /* no time at all */
  assert_int_equal(hn_tune(p, table, &o, &r, &e), HONE_OK);
  assert_int_equal(r.measured, 0);
  hn_tune_report_free(&r);
  hn_tuned *fresh = hn_tuned_create("test");
  o = (hone_tune_options){.max_steps = 1};
  assert_int_equal(hn_tune(p, fresh, &o, &r, &e), HONE_OK);
  assert_false(r.stopped);
  assert_int_equal(r.measured, 1);
  assert_int_equal(r.skipped, 1);
  hn_tune_report_free(&r);
  hn_tuned_destroy(fresh);
  hn_plan_free(p);
  hn_tuned_destroy(table);
  bench_close(&b);
}

/* A table with one measured step of the plan's, chosen as told. */
static hn_tuned *table_for(const hn_plan *p, uint32_t chosen) {
  hn_tuned *t = hn_tuned_create("key one");
  for (size_t i = 0; i < p->steps.len; i++) {
    if (!p->steps.ptr[i].tactic) continue; /* a change of layout */
    hn_timing timing[] = {{"planted_slow", slow.version, 0, 4e-4, 1e-6, false},
                          {"planted_quick", quick.version, 0, 1e-4, 2e-6, false}};
    assert_true(hn_tuned_put(t, &(hn_tuned_step){p->steps.ptr[i].signature, chosen, 2, timing}));
  }
  return t;
}

static void test_file(void **state) {
  (void)state;
  bench b = bench_open();
  hone_error e = {0};
  hn_plan *p = plan_with(&b, NULL);
  hn_tuned *t = table_for(p, 1), *again = hn_tuned_create("key one"), *other = hn_tuned_create("key two");
  assert_int_equal(hn_tuned_read(again, file("none.txt"), &e), HONE_OK); /* no file is no error */
  assert_int_equal(hn_tuned_write(t, file("sub/a.txt"), &e), HONE_OK);
  assert_int_equal(hn_tuned_read(again, file("sub/a.txt"), &e), HONE_OK);
  assert_int_equal(hn_tuned_count(again), 2);
  const hn_tuned_step *s = hn_tuned_find(again, a_pool(p)->signature);
  assert_non_null(s);
  assert_int_equal(s->chosen, 1);
  assert_int_equal(s->n, 2);
  assert_string_equal(s->timing[1].tactic, "planted_quick");
  assert_true(s->timing[1].seconds > 0.99e-4 && s->timing[1].seconds < 1.01e-4);
  /* another device's choices are neither used nor lost */
  assert_int_equal(hn_tuned_read(other, file("sub/a.txt"), &e), HONE_OK);
  assert_int_equal(hn_tuned_count(other), 0);
  hn_timing timing = {"x", 1, 1, 1e-3, 0, false};
  assert_true(hn_tuned_put(other, &(hn_tuned_step){"Conv something", 0, 1, &timing}));
  assert_int_equal(hn_tuned_write(other, file("sub/a.txt"), &e), HONE_OK);
  hn_tuned *third = hn_tuned_create("key one");
  assert_int_equal(hn_tuned_read(third, file("sub/a.txt"), &e), HONE_OK);
  assert_int_equal(hn_tuned_count(third), 2);
  hn_tuned_destroy(third);
  third = hn_tuned_create("key two");
  assert_int_equal(hn_tuned_read(third, file("sub/a.txt"), &e), HONE_OK);
  assert_int_equal(hn_tuned_count(third), 1);
  assert_int_equal(hn_tuned_find(third, "Conv something")->timing[0].threads, 1);
  hn_tuned_destroy(third);
  hn_tuned_destroy(other);
  hn_tuned_destroy(again);
  hn_tuned_destroy(t);
  hn_plan_free(p);
  bench_close(&b);
}

static void put_bytes(const char *path, const char *text, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, n, f), n);
  fclose(f);
}

/* Every truncation and every changed byte is noticed; nothing of such a file is used, and the next write
 * mends it. */
static void test_damaged_file(void **state) {
  (void)state;
  bench b = bench_open();
  hone_error e = {0};
  hn_plan *p = plan_with(&b, NULL);
  hn_tuned *t = table_for(p, 1);
  char text[4096], copy[4096];
  assert_int_equal(hn_tuned_write(t, file("b.txt"), &e), HONE_OK);
  FILE *f = fopen(file("b.txt"), "rb");
  size_t n = fread(text, 1, sizeof text, f);
  fclose(f);
  for (size_t i = 0; i < 2 * n; i++) {
    size_t len = i < n ? i : n;
    memcpy(copy, text, n);
    if (i >= n) copy[i - n] ^= 0x21;
    put_bytes(file("b.txt"), copy, len);
    hn_tuned *r = hn_tuned_create("key one");
    if (hn_tuned_read(r, file("b.txt"), &e) != HONE_ERROR_INPUT || hn_tuned_count(r))
      fail_msg("damage %zu of %zu was not noticed", i, 2 * n);
    hn_tuned_destroy(r);
  }
  hn_tuned_source source;
  hn_tuned *r = hn_tuned_open(&b.backend, b.device, file("b.txt"), &source);
  assert_non_null(r);
  assert_non_null(strstr(source.warning, "are not used"));
  assert_int_equal(hn_tuned_count(r), 0);
  hn_tuned_destroy(r);
  assert_int_equal(hn_tuned_write(t, file("b.txt"), &e), HONE_OK);
  r = hn_tuned_create("key one");
  assert_int_equal(hn_tuned_read(r, file("b.txt"), &e), HONE_OK);
  assert_int_equal(hn_tuned_count(r), 2);
  hn_tuned_destroy(r);
  r = hn_tuned_open(&b.backend, b.device, "off", &source);
  assert_string_equal(source.path, "");
  hn_tuned_destroy(r);
  hn_tuned_destroy(t);
  hn_plan_free(p);
  bench_close(&b);
}

static void test_same_table_same_plan(void **state) {
  (void)state;
  bench b = bench_open();
  hn_plan *p = plan_with(&b, NULL), *q[3];
  hn_tuned *t = table_for(p, 1);
  for (int i = 0; i < 3; i++) {
    q[i] = plan_with(&b, t);
    assert_int_equal(count_of(q[i], "planted_quick"), 3);
    assert_int_equal(q[i]->steps.len, q[0]->steps.len);
    for (size_t k = 0; k < q[i]->steps.len; k++) {
      if (q[0]->steps.ptr[k].signature)
        assert_string_equal(q[i]->steps.ptr[k].signature, q[0]->steps.ptr[k].signature);
      assert_ptr_equal(q[i]->steps.ptr[k].tactic, q[0]->steps.ptr[k].tactic);
    }
  }
  for (int i = 0; i < 3; i++) hn_plan_free(q[i]);
  /* a tactic that has changed since is measured again: until then the cost models choose */
  slow.version++;
  q[0] = plan_with(&b, t);
  assert_int_equal(count_of(q[0], "planted_slow"), 3);
  assert_false(a_pool(q[0])->tuned);
  slow.version--;
  hn_plan_free(q[0]);
  hn_plan_free(p);
  hn_tuned_destroy(t);
  bench_close(&b);
}

/* A choice that is masked gives way to the fastest of the others that were measured. */
static void test_masked_choice(void **state) {
  (void)state;
  bench b = bench_open();
  hone_error e = {0};
  hn_plan *p = plan_with(&b, NULL), *q = NULL;
  hn_tuned *t = table_for(p, 1);
  hn_plan_request r = {.backend = &b.backend,
                       .device = b.device,
                       .model = b.model,
                       .level = 1,
                       .tactics = "-planted_quick",
                       .tuned = t};
  assert_int_equal(hn_plan_build(&r, &q, &e), HONE_OK);
  assert_int_equal(count_of(q, "planted_slow"), 3);
  assert_true(a_pool(q)->tuned);
  hn_plan_free(q);
  hn_plan_free(p);
  hn_tuned_destroy(t);
  bench_close(&b);
}

/* The fastest of three, and what the cost models would take, gives another answer than the others do: it is
 * not chosen, not even where the choice is masked, and the file keeps that. */
static void test_wrong_answers(void **state) {
  (void)state;
  bench b = bench_open();
  b.backend.tactics = &wrong_tactics;
  hn_tuned *table = hn_tuned_create("test"), *again = hn_tuned_create("test");
  hone_tune_report r;
  hone_error e = {0};
  hn_plan *p = plan_with(&b, table), *q = NULL;
  assert_int_equal(count_of(p, "planted_wrong"), 3);
  if (hn_tune(p, table, &(hone_tune_options){0}, &r, &e) != HONE_OK) fail_msg("%s", e.what);
  for (uint32_t i = 0; i < r.n_steps; i++) {
    const hone_tune_step *s = &r.step[i];
    assert_string_equal(s->candidate[s->chosen].tactic, "planted_quick");
    for (uint32_t k = 0; k < s->n_candidates; k++)
      assert_int_equal(s->candidate[k].differs, strcmp(s->candidate[k].tactic, "planted_wrong") == 0);
  }
  hn_tune_report_free(&r);
  assert_int_equal(hn_tuned_write(table, file("wrong.txt"), &e), HONE_OK);
  if (hn_tuned_read(again, file("wrong.txt"), &e) != HONE_OK) fail_msg("%s", e.what);
  hn_plan_request request = {.backend = &b.backend,
                             .device = b.device,
                             .model = b.model,
                             .level = 1,
                             .tactics = "-planted_quick",
                             .tuned = again};
  assert_int_equal(hn_plan_build(&request, &q, &e), HONE_OK);
  assert_int_equal(count_of(q, "planted_slow"), 3);
  hn_plan_free(q);
  hn_plan_free(p);
  hn_tuned_destroy(again);
  hn_tuned_destroy(table);
  bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_finds_the_faster),
      cmocka_unit_test(test_wrong_answers),
      cmocka_unit_test(test_tie_keeps_the_cost_models_choice),
      cmocka_unit_test(test_margin),
      cmocka_unit_test(test_stopping_keeps_what_is_measured),
      cmocka_unit_test(test_file),
      cmocka_unit_test(test_damaged_file),
      cmocka_unit_test(test_same_table_same_plan),
      cmocka_unit_test(test_masked_choice),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
