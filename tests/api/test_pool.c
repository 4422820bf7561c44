/* One pool for models and contexts: what comes and goes finds its memory again, runs take none, and it is
 * told who holds what. usage: test_pool [DEVICE]; on a GPU with HONE_POOL=shared, as it is without the
 * emulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "net.h"

#include <hone/measure.h>
#include <hone/memory.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 24, COLUMNS = 160, WIDE = 320, CONTEXTS = 3, RUNS = 20 };

static const char *device = "cpu";
static float x[ROWS * COLUMNS];
static const hone_tensor *in[1];

static hone_engine *engine_open(void) {
  hone_engine *engine = NULL;
  hone_error e = {0};
  const hone_engine_options o = {.device = device, .threads = 2};
  if (hone_engine_create(&o, &engine, &e) != HONE_OK) fail_msg("%s", e.what);
  return engine;
}

/* Two products with a function between them; late: what is not 0 of the result, too. */
static hn_model *net(int64_t wide, bool late) {
  hn_model *m = net_begin();
  hn_value *y = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){ROWS, COLUMNS});
  y = net_op(m, "MatMul", (hn_value *[]){y, net_weights(m, 2, (const int64_t[]){COLUMNS, wide}, 1)}, 2);
  y = net_op(m, "Relu", &y, 1);
  y = net_op(m, "MatMul", (hn_value *[]){y, net_weights(m, 2, (const int64_t[]){wide, COLUMNS}, 2)}, 2);
  if (late) y = net_op(m, "NonZero", &y, 1);
  net_finish(m, y);
  return m;
}

static hone_plan *plan_open(hone_engine *engine, hn_model *m) {
  hone_plan *plan = NULL;
  hone_error e = {0};
  if (hone_plan_create(engine, m, NULL, &plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  return plan;
}

static hone_context *context_open(hone_plan *plan) {
  hone_context *c = NULL;
  hone_error e = {0};
  if (hone_context_create(plan, &c, &e) != HONE_OK) fail_msg("%s", e.what);
  return c;
}

static void run(hone_context *c) {
  hone_error e = {0};
  if (hone_context_run(c, in, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
}

/* Calls below the pools so far. */
static uint64_t calls(hone_engine *engine) {
  hone_memory_stats s;
  uint64_t n = 0;
  assert_int_equal(hone_engine_memory(engine, &s, NULL), HONE_OK);
  for (uint32_t i = 0; i < s.n_pools; i++) n += s.pool[i].taken + s.pool[i].given;
  hone_memory_stats_free(&s);
  return n;
}

static uint64_t reserved(hone_engine *engine) {
  hone_memory_stats s;
  uint64_t n = 0;
  assert_int_equal(hone_engine_memory(engine, &s, NULL), HONE_OK);
  for (uint32_t i = 0; i < s.n_pools; i++) n += s.pool[i].reserved;
  hone_memory_stats_free(&s);
  return n;
}

static void contexts_find_their_memory_again(void **state) {
  (void)state;
  hone_engine *engine = engine_open();
  hn_model *m = net(WIDE, false);
  hone_plan *plan = plan_open(engine, m);
  hone_context *first = context_open(plan);
  run(first);
  float want[ROWS * COLUMNS];
  memcpy(want, hone_context_output(first, 0)->data, sizeof want);
  hone_context_destroy(first);
  const uint64_t before = calls(engine);
  for (int i = 0; i < 10; i++) {
    hone_context *c = context_open(plan);
    run(c);
    assert_memory_equal(hone_context_output(c, 0)->data, want, sizeof want);
    hone_context_destroy(c);
  }
  assert_int_equal(calls(engine), before);
  /* and models, once the largest has been there */
  hone_plan_destroy(plan);
  uint64_t settled = 0;
  for (int i = 0; i < 4; i++) {
    plan = plan_open(engine, m);
    hone_context_destroy(context_open(plan));
    hone_plan_destroy(plan);
    if (i == 1) settled = calls(engine);
  }
  assert_int_equal(calls(engine), settled);
  hone_engine_destroy(engine);
  hone_model_release(m);
}

static void *run_many(void *context) {
  bool good = true;
  for (int i = 0; i < RUNS; i++) good &= hone_context_run(context, in, NULL, NULL) == HONE_OK;
  return good ? context : NULL;
}

/* Several contexts, each run many times, at once: nothing is allocated, above or below the pools. */
static void steady_runs_allocate_nothing(void **state) {
  (void)state;
  hone_engine *engine = engine_open();
  hn_model *m[2] = {net(WIDE, false), net(WIDE / 2, false)};
  hone_plan *plan[2] = {plan_open(engine, m[0]), plan_open(engine, m[1])};
  hone_context *c[CONTEXTS];
  pthread_t thread[CONTEXTS];
  for (int i = 0; i < CONTEXTS; i++) {
    c[i] = context_open(plan[i % 2]);
    run(c[i]);
  }
  const uint64_t below = calls(engine), above = hn_mem_count();
  for (int round = 0; round < RUNS; round++)
    for (int i = 0; i < CONTEXTS; i++) run(c[i]);
  for (int i = 0; i < CONTEXTS; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_many, c[i]), 0);
  for (int i = 0; i < CONTEXTS; i++) {
    void *good;
    pthread_join(thread[i], &good);
    assert_ptr_equal(good, c[i]);
  }
  assert_int_equal(hn_mem_count(), above);
  assert_int_equal(calls(engine), below);
  for (int i = 0; i < CONTEXTS; i++) hone_context_destroy(c[i]);
  for (int i = 0; i < 2; i++) hone_plan_destroy(plan[i]);
  for (int i = 0; i < 2; i++) hone_model_release(m[i]);
  hone_engine_destroy(engine);
}

/* Values whose shapes only the run knows come from the pool, too: it takes nothing once it has enough. */
static void late_values_come_from_the_pool(void **state) {
  (void)state;
  hone_engine *engine = engine_open();
  hn_model *m = net(WIDE, true);
  hone_plan *plan = plan_open(engine, m);
  hone_context *c = context_open(plan);
  hone_memory_stats s;
  run(c);
  run(c);
  const uint64_t before = calls(engine);
  for (int i = 0; i < RUNS; i++) {
    run(c);
    assert_true(hone_context_output(c, 0)->desc.dim[1] > 0);
  }
  assert_int_equal(calls(engine), before);
  assert_int_equal(hone_engine_memory(engine, &s, NULL), HONE_OK);
  assert_true(s.pool[0].owner[0].used_for[HONE_MEMORY_FOR_LATE] > 0);
  hone_memory_stats_free(&s);
  hone_context_destroy(c);
  hone_plan_destroy(plan);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

static void owners_are_models(void **state) {
  (void)state;
  hone_engine *engine = engine_open();
  hn_model *m = net(WIDE, false);
  hone_plan *plan = plan_open(engine, m);
  hone_memory_stats s;
  uint64_t arena, constants, workspace;
  hone_plan_memory(plan, &arena, &constants, &workspace);
  assert_ptr_equal(hone_plan_engine(plan), engine);
  hone_context *c[2] = {context_open(plan), context_open(plan)};
  assert_int_equal(hone_engine_memory(engine, &s, NULL), HONE_OK);
  assert_int_equal(s.n_pools, strcmp(device, "cpu") == 0 ? 1 : 2);
  assert_string_equal(s.pool[0].name, strcmp(device, "cpu") == 0 ? "host" : "cuda:0");
  const hone_memory_pool *p = &s.pool[0];
  const hone_memory_owner *o = &p->owner[0];
  assert_string_equal(o->name, m->graph->name);
  assert_int_equal(o->used_for[HONE_MEMORY_FOR_ACTIVATIONS], 2 * arena);
  assert_true(o->used_for[HONE_MEMORY_FOR_WEIGHTS] >= constants / 2 && constants > 0);
  assert_true(o->used <= o->reserved && o->used <= o->high_water && o->fragmentation < 1);
  assert_true(p->used >= o->used && p->reserved >= p->used && p->high_water >= p->used);
  assert_true(s.host_rss_peak >= s.host_rss);
  if (s.n_pools == 2) assert_true(s.device_total >= s.device_free && s.pool[1].used > 0);
  hone_memory_stats_free(&s);
  hone_context_destroy(c[0]);
  hone_context_destroy(c[1]);
  assert_int_equal(hone_engine_memory(engine, &s, NULL), HONE_OK);
  assert_int_equal(s.pool[0].owner[0].used_for[HONE_MEMORY_FOR_ACTIVATIONS], 0);
  hone_memory_stats_free(&s);
  hone_plan_destroy(plan);
  assert_int_equal(hone_engine_memory(engine, &s, NULL), HONE_OK);
  for (uint32_t i = 0; i < s.n_pools; i++) {
    assert_int_equal(s.pool[i].used, 0);
    assert_int_equal(s.pool[i].n_owners, 0);
  }
  hone_memory_stats_free(&s);
  assert_true(hone_engine_reclaim(engine) > 0);
  assert_int_equal(reserved(engine), 0);
  assert_int_equal(hone_engine_reclaim(engine), 0);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

static void nothing_is_kept_when_told_so(void **state) {
  (void)state;
  hone_engine *engine = engine_open();
  hn_model *m = net(WIDE, false);
  assert_int_equal(hone_engine_memory_keep(engine, 0, NULL), HONE_OK);
  hone_plan *plan = plan_open(engine, m);
  hone_context *c = context_open(plan);
  run(c);
  hone_context_destroy(c);
  hone_plan_destroy(plan);
  assert_int_equal(reserved(engine), 0);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* A context that cannot be made leaves nothing behind, and the next one is made. */
static void failures_leave_nothing_behind(void **state) {
  (void)state;
  hone_engine *engine = engine_open();
  hn_model *m = net(WIDE, false);
  hone_plan *plan = plan_open(engine, m);
  hone_memory_stats s;
  assert_int_equal(hone_engine_memory(engine, &s, NULL), HONE_OK);
  const uint64_t used = s.pool[0].used;
  hone_memory_stats_free(&s);
  bool reached = true;
  for (uint64_t at = 1; reached; at++) {
    hone_context *c = NULL;
    hone_error e = {0};
    hone_engine_reclaim(engine);
    hn_mem_fail_after(at);
    const hone_status status = hone_context_create(plan, &c, &e);
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    assert_true(status == HONE_OK ? c != NULL : status == HONE_ERROR_MEMORY && !c);
    if (c) run(c);
    hone_context_destroy(c);
    assert_int_equal(hone_engine_memory(engine, &s, NULL), HONE_OK);
    assert_int_equal(s.pool[0].used, used);
    hone_memory_stats_free(&s);
  }
  hone_plan_destroy(plan);
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* In a long run: a context comes and goes that takes much more than there was. */
typedef struct surge {
  hone_engine *engine;
  hone_plan *large;
  uint64_t reserved; /* with it */
} surge;

static bool come_and_go(void *arg, const char *what, uint32_t done, uint32_t total) {
  surge *s = arg;
  (void)what, (void)done, (void)total;
  if (s->reserved) return true;
  hone_context_destroy(context_open(s->large));
  s->reserved = reserved(s->engine);
  return true;
}

static void a_surge_is_given_back(void **state) {
  (void)state;
  hone_engine *engine = engine_open();
  hn_model *m = net(WIDE, false), *large = net_begin();
  hn_value *y = net_input(large, "x", HONE_DTYPE_F32, 1, (const int64_t[]){12 << 20});
  net_finish(large, net_op(large, "Relu", &y, 1));
  surge s = {engine, plan_open(engine, large), 0};
  hone_plan *plan = plan_open(engine, m);
  hone_context *c = context_open(plan);
  const hone_watch watch = {.progress = come_and_go, .arg = &s};
  const hone_subject subject = {.engine = engine, .plan = plan, .context = c, .in = in, .device = device};
  static hone_steady r;
  hone_error e = {0};
  /* A machine that stands still at the wrong time leaves no window behind the surge. */
  for (hone_steady_options o = {.seconds = 1, .watch = &watch}; r.n < 2 && o.seconds < 100; o.seconds *= 4) {
    s.reserved = 0;
    hone_engine_reclaim(engine);
    hone_steady_free(&r);
    if (hone_steady_measure(&subject, &o, NULL, &r, &e) != HONE_OK) fail_msg("%s", e.what);
  }
  size_t n;
  const hone_memory_sample *sample = hone_facts_memory_samples(r.record.facts, &n);
  assert_int_equal(n, r.n);
  assert_true(s.reserved > 40 << 20);
  assert_int_equal(r.reclaims, 1);
  assert_true(reserved(engine) < s.reserved / 2);
  assert_true(sample[0].pool_used_bytes > 0 && sample[0].pool_reserved_bytes >= sample[0].pool_used_bytes);
  const hone_memory_pool_fact *pool = hone_facts_memory_pools(r.record.facts, &n);
  assert_true(n >= 2 && !pool[0].owner && pool[0].reclaims >= 1 && pool[0].used > 0);
  assert_non_null(pool[1].owner);
  hone_steady_free(&r);
  hone_context_destroy(c);
  hone_plan_destroy(plan);
  hone_plan_destroy(s.large);
  hone_model_release(m);
  hone_model_release(large);
  hone_engine_destroy(engine);
}

int main(int argc, char **argv) {
  if (argc > 1) device = argv[1];
  static hone_tensor t;
  t = (hone_tensor){hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){ROWS, COLUMNS}), x};
  in[0] = &t;
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(contexts_find_their_memory_again),
      cmocka_unit_test(steady_runs_allocate_nothing),
      cmocka_unit_test(late_values_come_from_the_pool),
      cmocka_unit_test(owners_are_models),
      cmocka_unit_test(nothing_is_kept_when_told_so),
      cmocka_unit_test(failures_leave_nothing_behind),
      cmocka_unit_test(a_surge_is_given_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
