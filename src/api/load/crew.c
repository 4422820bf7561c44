#include "api/load/crew.h"
#include "api/measure/watch.h"

#include "base/error.h"
#include "base/os.h"

#include <pthread.h>
#include <time.h>

enum { LOOK_NS = 50000000 }; /* how often the caller looks whether it shall stop */

typedef struct state {
  const hn_crew *crew;
  hn_course *course;
  pthread_mutex_t lock;
  pthread_cond_t moved, ended; /* something may be taken now; nobody works any more */
  uint64_t start;              /* ns */
  uint32_t working;
  bool sleeping; /* a worker waits for the next arrival; the others wait for it */
  hone_status status;
  hone_error error;
} state;

typedef struct worker {
  state *of;
  uint32_t number;
  hn_taken taken;
  pthread_t thread;
} worker;

static struct timespec clock_of(uint64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

static uint64_t since_start(const state *s) { return hn_now_ns() - s->start; }

/* One sleeps until the next arrival, so that it does not wake all. */
static void wait_until(state *s, uint64_t ns) {
  if (s->sleeping) {
    pthread_cond_wait(&s->moved, &s->lock);
    return;
  }
  const struct timespec at = clock_of(s->start + ns);
  s->sleeping = true;
  pthread_cond_timedwait(&s->moved, &s->lock, &at);
  s->sleeping = false;
}

static void fail(state *s, hone_status status, const hone_error *error) {
  s->course->stopped = true;
  if (status == HONE_ERROR_CANCELLED) s->course->interrupted = true; /* by who else knows the context */
  if (status == HONE_ERROR_CANCELLED || s->status != HONE_OK) return;
  s->status = status;
  s->error = *error;
}

/* Runs what was taken; called and returns with the lock. */
static void run_taken(state *s, worker *w) {
  hone_error error = {0};
  pthread_cond_signal(&s->moved); /* somebody else waits for the next arrival now */
  pthread_mutex_unlock(&s->lock);
  hone_status status = s->crew->run(s->crew->arg, w->number, &w->taken, &error);
  const uint64_t now = since_start(s);
  pthread_mutex_lock(&s->lock);
  if (status == HONE_OK) status = hn_course_done(s->course, &w->taken, now, &error);
  if (status != HONE_OK) fail(s, status, &error);
  pthread_cond_broadcast(&s->moved);
}

static void *work(void *arg) {
  worker *w = arg;
  state *s = w->of;
  pthread_mutex_lock(&s->lock);
  for (hn_take take;;) {
    uint64_t until = 0;
    take = hn_course_take(s->course, since_start(s), &w->taken, &until);
    if (take == HN_TAKE_OVER) break;
    if (take == HN_TAKE_RUN) run_taken(s, w);
    if (take == HN_TAKE_WAIT) pthread_cond_wait(&s->moved, &s->lock);
    if (take == HN_TAKE_LATER) wait_until(s, until);
  }
  s->working--;
  pthread_cond_broadcast(&s->moved);
  pthread_cond_signal(&s->ended);
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* Share of the test that is done, in percent; the end is told by who ends it. */
static uint32_t percent(const hn_course *c, uint64_t now) {
  const double by_time = c->s.min_duration_ns ? 100.0 * (double)now / (double)c->s.min_duration_ns : 100;
  const bool all = c->s.scenario == HONE_SCENARIO_OFFLINE;
  const double by_count =
      100.0 * (double)(all ? c->samples : c->answered) / (double)(all ? c->schedule.size : c->s.min_queries);
  const double least = by_time < by_count ? by_time : by_count;
  return least < 99 ? (uint32_t)least : 99;
}

/* Until nobody works: tells how far it is, and stops what shall be stopped. Called with the lock. */
static void look_after(state *s) {
  while (s->working) {
    const struct timespec at = clock_of(hn_now_ns() + LOOK_NS);
    pthread_cond_timedwait(&s->ended, &s->lock, &at);
    const uint32_t done = percent(s->course, since_start(s));
    pthread_mutex_unlock(&s->lock);
    const bool go_on = hn_watch_tell(s->crew->watch, "load", done, 100);
    pthread_mutex_lock(&s->lock);
    if (go_on && s->status == HONE_OK) continue;
    if (!go_on && s->working) s->course->interrupted = true;
    s->course->stopped = true;
    if (s->crew->cancel) s->crew->cancel(s->crew->arg);
    pthread_cond_broadcast(&s->moved);
  }
}

static hone_status start_worker(state *s, worker *w, uint32_t number, hone_error *error) {
  *w = (worker){.of = s, .number = number};
  const hone_status status = hn_taken_make(s->course->rows, &w->taken, error);
  if (status != HONE_OK) return status;
  if (pthread_create(&w->thread, NULL, work, w) == 0) return HONE_OK;
  hn_taken_free(&w->taken);
  return hn_fail(error, HONE_ERROR_MEMORY, "thread %u of the test could not be started", number);
}

static void make_locks(state *s) {
  pthread_condattr_t attr;
  pthread_mutex_init(&s->lock, NULL);
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&s->moved, &attr);
  pthread_cond_init(&s->ended, &attr);
  pthread_condattr_destroy(&attr);
}

hone_status hn_crew_run(const hn_crew *crew, hn_course *course, hone_error *error) {
  state s = {.crew = crew, .course = course};
  const uint32_t n = course->s.scenario == HONE_SCENARIO_SINGLE ? 1 : course->in_flight;
  worker *workers = hn_calloc(n, sizeof *workers);
  if (!workers) return hn_fail_memory(error, n * sizeof *workers, "the threads of the test");
  make_locks(&s);
  pthread_mutex_lock(&s.lock);
  hone_error failed = {0};
  uint32_t started = 0;
  while (started < n && s.status == HONE_OK) {
    s.status = start_worker(&s, &workers[started], started, &failed);
    started += s.status == HONE_OK;
  }
  if (s.status != HONE_OK) {
    s.error = failed;
    course->stopped = true;
  }
  s.working = started;
  s.start = hn_now_ns();
  look_after(&s);
  pthread_mutex_unlock(&s.lock);
  for (uint32_t i = 0; i < started; i++) {
    pthread_join(workers[i].thread, NULL);
    hn_taken_free(&workers[i].taken);
  }
  pthread_cond_destroy(&s.moved);
  pthread_cond_destroy(&s.ended);
  pthread_mutex_destroy(&s.lock);
  hn_free(workers);
  if (s.status != HONE_OK && error) *error = s.error;
  return s.status;
}
