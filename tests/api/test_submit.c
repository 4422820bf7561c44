/* Runs that nobody waits for: submit, wait, callbacks. No test knows how long a run takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "net.h"

#include <hone/session.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define FOR_EVER ((int64_t)1 << 62)

/* A session on net_loop, and its input. */
typedef struct looped {
  net_session s;
  float x[4];
  hone_tensor tensor;
  const hone_tensor *in[1];
} looped;

static void open_loop(looped *l, int64_t trips) {
  *l = (looped){.s = net_open(net_loop(trips), 2, false, 2), .x = {1, 2, 3, 4}};
  l->tensor = (hone_tensor){hone_desc(HONE_DTYPE_F32, 1, (const int64_t[]){4}), l->x};
  l->in[0] = &l->tensor;
}

static float last_of(const hone_context *c) { return ((const float *)hone_context_output(c, 0)->data)[3]; }

/* What callbacks were told. */
typedef struct heard {
  atomic_uint calls;
  hone_status status;
  hone_error error;
  float last;
  unsigned more; /* runs that it submits itself */
  const hone_tensor *const *in;
  hone_status waited, next; /* of wait and of the last submit in it */
} heard;

static void hear(void *arg, hone_context *c, hone_status status, const hone_error *error) {
  heard *h = arg;
  h->status = status;
  h->error = *error;
  if (status == HONE_OK) h->last = last_of(c);
  h->waited = hone_context_wait(c, 0, NULL);
  if (atomic_fetch_add(&h->calls, 1) < h->more) h->next = hone_context_submit(c, h->in, NULL, hear, h, NULL);
}

static void test_run(void **state) {
  (void)state;
  looped l;
  heard h = {0};
  hone_error e = {0};
  open_loop(&l, 9);
  assert_int_equal(hone_context_wait(l.s.context, 0, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "nothing was submitted to the context");
  for (unsigned i = 1; i <= 100; i++) {
    l.x[3] = (float)i;
    assert_int_equal(hone_context_submit(l.s.context, l.in, NULL, i % 2 ? hear : NULL, &h, &e), HONE_OK);
    assert_int_equal(hone_context_wait(l.s.context, i % 3 ? 0 : 1e8, &e), HONE_OK);
    assert_true(last_of(l.s.context) == 10.0f * (float)i);
    assert_int_equal(h.calls, (i + 1) / 2);
    assert_true(h.last == 10.0f * (float)(i % 2 ? i : i - 1));
  }
  assert_int_equal(h.status, HONE_OK);
  assert_int_equal(h.waited, HONE_ERROR_USAGE);                     /* in its own callback */
  assert_int_equal(hone_context_wait(l.s.context, 0, &e), HONE_OK); /* still what the last came to */
  assert_int_equal(hone_context_run(l.s.context, l.in, NULL, &e), HONE_OK);
  net_close(&l.s);
}

/* A callback keeps the context at work; waiting lasts until it does not. */
static void test_chain(void **state) {
  (void)state;
  looped l;
  open_loop(&l, 3);
  heard h = {.more = 50, .in = l.in};
  assert_int_equal(hone_context_submit(l.s.context, l.in, NULL, hear, &h, NULL), HONE_OK);
  assert_int_equal(hone_context_wait(l.s.context, 0, NULL), HONE_OK);
  assert_int_equal(h.calls, 51);
  assert_int_equal(h.next, HONE_OK);
  net_close(&l.s);
}

/* While it runs the context is in use, and can be cancelled. */
static void test_in_use(void **state) {
  (void)state;
  looped l;
  heard h = {0};
  hone_error e = {0};
  open_loop(&l, FOR_EVER);
  const hone_tensor *in[] = {l.in[0]};
  assert_int_equal(hone_context_submit(l.s.context, in, NULL, hear, &h, &e), HONE_OK);
  in[0] = NULL; /* the array is not borrowed */
  assert_int_equal(hone_context_submit(l.s.context, l.in, NULL, NULL, NULL, &e), HONE_ERROR_USAGE);
  assert_non_null(strstr(e.what, "in use"));
  assert_int_equal(hone_context_run(l.s.context, l.in, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_wait(l.s.context, 0.001, &e), HONE_ERROR_BUDGET);
  hone_context_cancel(l.s.context);
  assert_int_equal(hone_context_wait(l.s.context, 0, &e), HONE_ERROR_CANCELLED);
  assert_int_equal(e.status, HONE_ERROR_CANCELLED);
  assert_int_equal(h.calls, 1);
  assert_int_equal(h.error.status, HONE_ERROR_CANCELLED);
  /* And then it serves the next one, with its limits. */
  const hone_run_options few = {.max_nodes = 10};
  assert_int_equal(hone_context_submit(l.s.context, l.in, &few, hear, &h, &e), HONE_OK);
  assert_int_equal(hone_context_wait(l.s.context, 0, &e), HONE_ERROR_BUDGET);
  assert_int_equal(h.status, HONE_ERROR_BUDGET);
  net_close(&l.s);
}

/* Several runs of one plan in flight: none would end if they waited for each other. */
static void test_in_flight(void **state) {
  (void)state;
  enum { N = 4 };
  looped l;
  heard h[N] = {0};
  hone_context *c[N];
  open_loop(&l, FOR_EVER);
  for (int i = 0; i < N; i++) {
    assert_int_equal(hone_context_create(l.s.plan, &c[i], NULL), HONE_OK);
    assert_int_equal(hone_context_submit(c[i], l.in, NULL, hear, &h[i], NULL), HONE_OK);
  }
  for (int i = N - 1; i >= 0; i--) {
    hone_context_cancel(c[i]);
    assert_int_equal(hone_context_wait(c[i], 0, NULL), HONE_ERROR_CANCELLED);
    assert_int_equal(h[i].calls, 1);
    if (i)
      assert_int_equal(hone_context_wait(c[i - 1], 0.0001, NULL), HONE_ERROR_BUDGET); /* the others go on */
  }
  for (int i = 0; i < N; i++) hone_context_destroy(c[i]);
  net_close(&l.s);
}

/* Threads of one's own: as many as the engine has at most, not while a run is under way, the same answers. */
static void test_threads(void **state) {
  (void)state;
  looped l, long_one;
  hone_error e = {0};
  open_loop(&l, 9);
  for (uint32_t threads = 0; threads <= 2; threads++) {
    assert_int_equal(hone_context_set_threads(l.s.context, threads, &e), HONE_OK);
    assert_int_equal(hone_context_run(l.s.context, l.in, NULL, &e), HONE_OK);
    assert_true(last_of(l.s.context) == 40);
  }
  assert_int_equal(hone_context_set_threads(l.s.context, 3, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.what, "a context can have 1 to 2 threads, got 3");
  assert_int_equal(hone_context_run(l.s.context, l.in, NULL, &e), HONE_OK); /* with those that it had */
  net_close(&l.s);
  open_loop(&long_one, FOR_EVER);
  assert_int_equal(hone_context_submit(long_one.s.context, long_one.in, NULL, NULL, NULL, &e), HONE_OK);
  assert_int_equal(hone_context_set_threads(long_one.s.context, 1, &e), HONE_ERROR_USAGE);
  hone_context_cancel(long_one.s.context);
  assert_int_equal(hone_context_wait(long_one.s.context, 0, NULL), HONE_ERROR_CANCELLED);
  net_close(&long_one.s);
}

/* The end of a context cancels what is under way, tells it, and takes no more. */
static void test_destroy(void **state) {
  (void)state;
  for (int again = 0; again < 2; again++) {
    looped l;
    open_loop(&l, FOR_EVER);
    heard h = {.more = again ? 1000000 : 0, .in = l.in};
    assert_int_equal(hone_context_submit(l.s.context, l.in, NULL, hear, &h, NULL), HONE_OK);
    net_close(&l.s);
    assert_int_equal(h.calls, 1);
    assert_int_equal(h.status, HONE_ERROR_CANCELLED);
    if (again) assert_int_equal(h.next, HONE_ERROR_CANCELLED);
  }
}

/* Asked from other threads at once, as servers do: every run that was taken is told of once. */
static void test_many(void **state) {
  (void)state;
  enum { N = 3, RUNS = 200 };
  looped l;
  heard h[N] = {0};
  hone_context *c[N];
  unsigned taken[N] = {0};
  open_loop(&l, 2);
  for (int i = 0; i < N; i++) assert_int_equal(hone_context_create(l.s.plan, &c[i], NULL), HONE_OK);
  for (unsigned run = 0; run < N * RUNS; run++) {
    const unsigned i = run % N;
    hone_status status;
    while ((status = hone_context_submit(c[i], l.in, NULL, hear, &h[i], NULL)) == HONE_ERROR_USAGE)
      sched_yield();
    assert_int_equal(status, HONE_OK);
    taken[i]++;
    if (run % 7 == 0) hone_context_cancel(c[(run + 1) % N]); /* hits a run, or the next one */
  }
  for (int i = 0; i < N; i++) {
    const hone_status status = hone_context_wait(c[i], 0, NULL);
    assert_true(status == HONE_OK || status == HONE_ERROR_CANCELLED);
    assert_int_equal(h[i].calls, taken[i]);
    hone_context_destroy(c[i]);
  }
  net_close(&l.s);
}

static void test_refused(void **state) {
  (void)state;
  looped l;
  heard h = {0};
  hone_error e = {0};
  open_loop(&l, 2);
  const hone_tensor *none[] = {NULL};
  hone_tensor wrong = l.tensor;
  wrong.desc.dim[0] = 3;
  const hone_tensor *bad[] = {&wrong};
  assert_int_equal(hone_context_submit(l.s.context, none, NULL, hear, &h, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_submit(l.s.context, bad, NULL, hear, &h, &e), HONE_ERROR_USAGE);
  assert_non_null(strstr(e.what, "does not fit the plan"));
  assert_int_equal(hone_context_submit(NULL, l.in, NULL, hear, &h, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_wait(NULL, 0, &e), HONE_ERROR_USAGE);
  hn_mem_fail_after(1); /* no thread: the context stays usable */
  assert_int_equal(hone_context_submit(l.s.context, l.in, NULL, hear, &h, &e), HONE_ERROR_MEMORY);
  hn_mem_fail_after(0);
  assert_int_equal(h.calls, 0);
  assert_int_equal(hone_context_run(l.s.context, l.in, NULL, &e), HONE_OK);
  net_close(&l.s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_run),       cmocka_unit_test(test_chain),   cmocka_unit_test(test_in_use),
      cmocka_unit_test(test_in_flight), cmocka_unit_test(test_threads), cmocka_unit_test(test_destroy),
      cmocka_unit_test(test_many),      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
