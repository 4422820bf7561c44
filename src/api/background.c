#include "api/background.h"

#include "base/error.h"
#include "base/os.h"

#include <pthread.h>
#include <time.h>

struct hn_background {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t work, idle; /* there is a job, or the end; nothing is under way */
  hn_job job;
  bool given, busy, ending; /* a job waits; one is under way; no more are taken */
  hone_status status;       /* of the last one */
  hone_error error;
};

/* Does the job that waits; called and returns with the lock, on the thread or on one that waits for it. */
static void do_job(hn_background *b) {
  const hn_job job = b->job;
  hone_error error = {0};
  b->given = false;
  b->busy = true;
  pthread_mutex_unlock(&b->lock);
  const hone_status status = job.run(job.context, &error);
  if (job.done) job.done(job.arg, job.context, status, &error);
  pthread_mutex_lock(&b->lock);
  b->busy = false;
  b->status = status;
  b->error = error;
  if (!b->given) pthread_cond_broadcast(&b->idle);
}

static void *work(void *arg) {
  hn_background *b = arg;
  pthread_mutex_lock(&b->lock);
  while (b->given || !b->ending)
    if (b->given)
      do_job(b);
    else
      pthread_cond_wait(&b->work, &b->lock);
  pthread_mutex_unlock(&b->lock);
  return NULL;
}

static void destroy(hn_background *b) {
  pthread_cond_destroy(&b->work);
  pthread_cond_destroy(&b->idle);
  pthread_mutex_destroy(&b->lock);
  hn_free(b);
}

hone_status hn_background_start(hn_background **out, hone_error *error) {
  hn_background *b = hn_calloc(1, sizeof *b);
  pthread_condattr_t attr;
  *out = NULL;
  if (!b) return hn_fail_memory(error, sizeof *b, "a thread for runs in the background");
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->work, &attr);
  pthread_cond_init(&b->idle, &attr);
  pthread_condattr_destroy(&attr);
  /* The thread waits for the lock, so that it finds its own number written. */
  pthread_mutex_lock(&b->lock);
  const int failed = pthread_create(&b->thread, NULL, work, b);
  pthread_mutex_unlock(&b->lock);
  if (failed) {
    destroy(b);
    return hn_fail(error, HONE_ERROR_MEMORY, "a thread for runs in the background could not be started");
  }
  *out = b;
  return HONE_OK;
}

bool hn_background_give(hn_background *b, const hn_job *job) {
  pthread_mutex_lock(&b->lock);
  const bool taken = !b->ending;
  if (taken) {
    b->job = *job;
    b->given = true;
    pthread_cond_signal(&b->work);
  }
  pthread_mutex_unlock(&b->lock);
  return taken;
}

/* With the lock. False: the time is over. */
static bool wait_idle(hn_background *b, double max_seconds) {
  const uint64_t most = max_seconds > 0 && max_seconds < 1e9 ? (uint64_t)(max_seconds * 1e9) : 0;
  const uint64_t end = hn_now_ns() + most;
  const struct timespec at = {.tv_sec = (time_t)(end / 1000000000u), .tv_nsec = (long)(end % 1000000000u)};
  while (b->given || b->busy)
    if (!(max_seconds > 0) || max_seconds >= 1e9)
      pthread_cond_wait(&b->idle, &b->lock);
    else if (pthread_cond_timedwait(&b->idle, &b->lock, &at) != 0)
      return !b->given && !b->busy;
  return true;
}

hone_status hn_background_wait(hn_background *b, double max_seconds, hone_error *error) {
  if (pthread_equal(pthread_self(), b->thread))
    return hn_fail(error, HONE_ERROR_USAGE, "a callback cannot wait for its own context");
  pthread_mutex_lock(&b->lock);
  /* Waking the thread and being woken by it takes tens of microseconds: who has nothing to do but wait does
   * the job. */
  if (b->given && !b->busy && !b->job.done && !(max_seconds > 0)) do_job(b);
  const bool idle = wait_idle(b, max_seconds);
  const hone_status status = b->status;
  if (idle && status != HONE_OK && error) *error = b->error;
  pthread_mutex_unlock(&b->lock);
  return idle ? status : hn_fail(error, HONE_ERROR_BUDGET, "the run is not done after %g s", max_seconds);
}

void hn_background_refuse(hn_background *b) {
  pthread_mutex_lock(&b->lock);
  b->ending = true;
  pthread_cond_signal(&b->work);
  pthread_mutex_unlock(&b->lock);
}

void hn_background_end(hn_background *b) {
  if (!b) return;
  hn_background_refuse(b);
  pthread_join(b->thread, NULL);
  pthread_mutex_lock(&b->lock);
  wait_idle(b, 0); /* for one who does the job in place of the thread */
  pthread_mutex_unlock(&b->lock);
  destroy(b);
}
