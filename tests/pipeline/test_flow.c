/* Items through stages: each told once and in order, broken ones by their own error, all bounds kept, also
 * when the flow is cancelled at any moment, in batches, and while the number of workers changes. */
#include "api/pipeline/flow.h"
#include "base/error.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { IN_FLIGHT = 7 };

typedef struct world {
  hn_flow *flow;
  const hn_flow_options *o;
  uint64_t item[IN_FLIGHT], passed[IN_FLIGHT];
  uint64_t next, told, good, broken, cancelled;
  uint64_t cancel_at; /* told: the callback cancels; 0: never */
  uint64_t close_at;
  bool resize; /* the callback sets numbers of workers */
  atomic_uint in_stage[HN_FLOW_STAGES], largest[HN_FLOW_STAGES];
  atomic_bool inside[IN_FLIGHT]; /* a stage has the slot */
  atomic_bool wrong;
} world;

static const hn_flow_options options = {.workers = {3, 2, 2}, .queue = {0, 2, 3}, .in_flight = IN_FLIGHT};
static const hn_flow_options batches = {
    .workers = {3, 2, 2}, .queue = {0, 3, 4}, .batch = {1, 3, 1}, .in_flight = IN_FLIGHT};

static uint64_t mixed(uint64_t n) { return (n * 6364136223846793005u + 1442695040888963407u) >> 33; }
static bool is_broken(uint64_t n) { return mixed(n) % 10 == 0; }

static void pass(world *w, uint32_t stage, hn_flow_item *item) {
  const uint32_t slot = item->slot;
  if (w->passed[slot] != stage) w->wrong = true;
  if (atomic_exchange(&w->inside[slot], true)) w->wrong = true;
  for (uint64_t i = mixed(w->item[slot] + stage) % 20; i; i--) sched_yield();
  w->passed[slot]++;
  w->inside[slot] = false;
  if (is_broken(w->item[slot]) && mixed(w->item[slot]) / 10 % HN_FLOW_STAGES == stage)
    item->status = hn_fail(item->error, HONE_ERROR_INPUT, "item %llu", (unsigned long long)w->item[slot]);
}

static void run(void *arg, uint32_t stage, uint32_t number, hn_flow_item *item, uint32_t n) {
  world *w = arg;
  if (atomic_fetch_add(&w->in_stage[stage], 1) >= w->o->workers[stage]) w->wrong = true;
  if (number >= w->o->workers[stage] || n < 1 || n > (w->o->batch[stage] ? w->o->batch[stage] : 1))
    w->wrong = true;
  if (n > w->largest[stage]) w->largest[stage] = n;
  for (uint32_t i = 0; i < n; i++) pass(w, stage, &item[i]);
  atomic_fetch_sub(&w->in_stage[stage], 1);
}

static void tell(void *arg, uint64_t number, uint32_t slot, hone_status status, const hone_error *error) {
  world *w = arg;
  if (number != w->told || w->item[slot] != number || w->inside[slot]) w->wrong = true;
  w->told++;
  w->good += status == HONE_OK;
  w->broken += status == HONE_ERROR_INPUT;
  w->cancelled += status == HONE_ERROR_CANCELLED;
  if (status == HONE_OK && (is_broken(number) || w->passed[slot] != HN_FLOW_STAGES)) w->wrong = true;
  if (status == HONE_ERROR_INPUT && (!is_broken(number) || strtoull(error->what + 5, NULL, 10) != number))
    w->wrong = true;
  if (w->cancel_at && w->told == w->cancel_at) hn_flow_cancel(w->flow);
  if (w->close_at && w->told == w->close_at) hn_flow_close(w->flow);
  if (w->resize && number % 16 == 0)
    hn_flow_set_workers(w->flow, (uint32_t)(number / 16 % HN_FLOW_STAGES), (uint32_t)(mixed(number) % 5));
}

static void fill(void *arg, uint32_t slot) {
  world *w = arg;
  w->item[slot] = w->next++;
  w->passed[slot] = 0;
}

static void begin(world *w, const hn_flow_options *o) {
  hone_error error;
  w->o = o;
  assert_int_equal(hn_flow_create(o, &(hn_flow_work){w, run, tell}, &w->flow, &error), HONE_OK);
}

static void check_bounds(const world *w, const hn_flow_stats *s) {
  uint64_t parts = s->held_ns;
  assert_true(s->most_in_flight <= IN_FLIGHT);
  for (int i = 0; i < HN_FLOW_STAGES; i++) {
    if (i) assert_true(s->most_waiting[i] <= w->o->queue[i]);
    assert_int_equal(s->waiting[i] + s->running[i], 0);
    parts += s->waited_ns[i] + s->spent_ns[i];
  }
  assert_int_equal(parts, s->whole_ns); /* every moment of every item is in one of them */
}

static void push(world *w, const hn_flow_options *o, uint64_t n, hn_flow_stats *s) {
  begin(w, o);
  for (uint64_t i = 0; i < n; i++) assert_int_equal(hn_flow_submit(w->flow, fill, w, NULL), HONE_OK);
  hn_flow_drain(w->flow);
  hn_flow_stats_get(w->flow, s);
  hn_flow_destroy(w->flow);
  uint64_t broken = 0;
  for (uint64_t i = 0; i < n; i++) broken += is_broken(i);
  assert_false(w->wrong);
  assert_int_equal(w->told, n);
  assert_int_equal(w->broken, broken);
  assert_int_equal(w->good, n - broken);
  assert_int_equal(s->failed, broken);
  assert_int_equal(s->items[0], n);
  check_bounds(w, s);
}

static void all_are_told(void **state) {
  (void)state;
  world w = {0};
  hn_flow_stats s;
  push(&w, &options, 10000, &s);
  assert_int_equal(s.runs[1], s.items[1]);
}

static void in_batches(void **state) {
  (void)state;
  world w = {0};
  hn_flow_stats s;
  push(&w, &batches, 5000, &s);
  assert_int_equal(w.largest[0], 1);
  assert_int_equal(w.largest[1], 3);
  assert_true(s.runs[1] < s.items[1]);
  world few = {0}; /* less than a batch, and nobody else comes */
  push(&few, &batches, 2, &s);
}

static void while_workers_change(void **state) {
  (void)state;
  world w = {.resize = true}, b = {.resize = true};
  hn_flow_stats s;
  push(&w, &options, 5000, &s);
  push(&b, &batches, 5000, &s);
  assert_true(s.active_area[0] > 0);
}

/* What was taken goes on, nothing else is taken, also not by a call that waits. */
static void closed_in_between(void **state) {
  (void)state;
  for (uint64_t round = 1; round <= 20; round++) {
    world w = {.close_at = round * 7};
    begin(&w, round % 2 ? &options : &batches);
    hone_status status = HONE_OK;
    while (status == HONE_OK) status = hn_flow_submit(w.flow, fill, &w, NULL);
    assert_int_equal(status, HONE_ERROR_CANCELLED);
    hn_flow_drain(w.flow);
    hn_flow_destroy(w.flow);
    assert_false(w.wrong);
    assert_int_equal(w.told, w.next);
    assert_int_equal(w.cancelled, 0);
  }
}

static void *cancel_later(void *arg) {
  world *w = arg;
  nanosleep(&(struct timespec){0, (long)(mixed(w->cancel_at) % 3000) * 300}, NULL);
  hn_flow_cancel(w->flow);
  return NULL;
}

/* By the callback, or by another thread at any time. */
static void cancelled_at_random(void **state) {
  (void)state;
  for (uint64_t round = 1; round <= 100; round++) {
    world w = {.cancel_at = mixed(round) % 300 + 1};
    begin(&w, round / 2 % 2 ? &options : &batches);
    pthread_t thread;
    const bool other = round % 2;
    if (other) assert_int_equal(pthread_create(&thread, NULL, cancel_later, &w), 0);
    hone_status status = HONE_OK;
    while (status == HONE_OK) status = hn_flow_submit(w.flow, fill, &w, NULL);
    assert_int_equal(status, HONE_ERROR_CANCELLED);
    if (other) pthread_join(thread, NULL);
    hn_flow_drain(w.flow);
    hn_flow_stats s;
    hn_flow_stats_get(w.flow, &s);
    hn_flow_destroy(w.flow);
    assert_false(w.wrong);
    assert_int_equal(w.told, w.next);
    assert_int_equal(w.good + w.broken + w.cancelled, w.next);
    assert_int_equal(s.cancelled, w.cancelled);
    check_bounds(&w, &s);
  }
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  hn_flow *flow;
  hone_error error;
  hn_flow_options o = options;
  o.in_flight = 0;
  assert_int_equal(hn_flow_create(&o, &(hn_flow_work){0}, &flow, &error), HONE_ERROR_USAGE);
  o = options;
  o.workers[1] = 0;
  assert_int_equal(hn_flow_create(&o, &(hn_flow_work){0}, &flow, &error), HONE_ERROR_USAGE);
  o = options;
  o.queue[2] = 0;
  assert_int_equal(hn_flow_create(&o, &(hn_flow_work){0}, &flow, &error), HONE_ERROR_USAGE);
  assert_null(flow);
  o = batches;
  o.queue[1] = 2; /* less than what the stage takes at once: it would wait for ever */
  assert_int_equal(hn_flow_create(&o, &(hn_flow_work){0}, &flow, &error), HONE_ERROR_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_are_told),         cmocka_unit_test(in_batches),
      cmocka_unit_test(while_workers_change), cmocka_unit_test(closed_in_between),
      cmocka_unit_test(cancelled_at_random),  cmocka_unit_test(what_cannot_be_is_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
