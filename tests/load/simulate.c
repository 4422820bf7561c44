#include "load/simulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { MOST_WORKERS = 8 };

typedef struct worker {
  bool busy;
  uint64_t until;
  hn_taken taken;
} worker;

/* All that are free take something; the time of the next event, UINT64_MAX for none. */
static uint64_t take_all(hn_course *c, worker *w, uint32_t n, uint64_t now, uint64_t *runs,
                         service_fn *service, void *arg) {
  uint64_t next = UINT64_MAX;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t until = now;
    const hn_take take = w[i].busy ? HN_TAKE_WAIT : hn_course_take(c, now, &w[i].taken, &until);
    if (take == HN_TAKE_RUN) {
      assert_in_range(w[i].taken.n, 1, c->rows);
      w[i].busy = true;
      w[i].until = now + service(arg, (*runs)++, i, &w[i].taken);
    }
    if (take == HN_TAKE_LATER) {
      assert_true(until > now);
      if (until < next) next = until;
    }
    if (w[i].busy && w[i].until < next) next = w[i].until;
  }
  return next;
}

void simulate(hn_course *c, service_fn *service, void *arg, uint64_t stop_at) {
  worker w[MOST_WORKERS] = {0};
  const uint32_t n = c->s.scenario == HONE_SCENARIO_SINGLE ? 1 : c->in_flight;
  uint64_t now = 0, runs = 0;
  assert_in_range(n, 1, MOST_WORKERS);
  for (uint32_t i = 0; i < n; i++) assert_int_equal(hn_taken_make(c->rows, &w[i].taken, NULL), HONE_OK);
  while ((now = take_all(c, w, n, now, &runs, service, arg)) != UINT64_MAX) {
    for (uint32_t i = 0; i < n; i++) {
      if (!w[i].busy || w[i].until != now) continue;
      w[i].busy = false;
      assert_int_equal(hn_course_done(c, &w[i].taken, now, NULL), HONE_OK);
    }
    if (stop_at && now >= stop_at) c->stopped = c->interrupted = true;
  }
  for (uint32_t i = 0; i < n; i++) hn_taken_free(&w[i].taken);
}

hone_load_result simulated(const hone_load_settings *s, uint32_t in_flight, uint32_t rows,
                           service_fn *service, void *arg) {
  hn_course c;
  hone_load_result r;
  hone_error error = {0};
  if (hn_course_open(s, in_flight, rows, &c, &error) != HONE_OK) fail_msg("%s", error.what);
  simulate(&c, service, arg, 0);
  hn_course_result(&c, &r);
  hn_course_close(&c);
  return r;
}
