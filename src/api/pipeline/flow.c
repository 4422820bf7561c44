#include "api/pipeline/flow.h"

#include "base/error.h"
#include "base/os.h"

#include <pthread.h>

enum { AT_NOWHERE = -1 };

typedef struct slot {
  int at;       /* the stage that it waits for or is in; HN_FLOW_STAGES: done; AT_NOWHERE: free */
  bool running; /* in that stage */
  hone_status status;
  hone_error error;
} slot;

typedef struct worker {
  hn_flow *of;
  uint32_t stage, number;
  pthread_t thread;
} worker;

struct hn_flow {
  hn_flow_options o;
  hn_flow_work work;
  pthread_mutex_t lock;
  pthread_cond_t moved[HN_FLOW_STAGES]; /* a worker of the stage may find something */
  pthread_cond_t told;
  slot *slots; /* item n has slot n % in_flight */
  worker *workers;
  uint32_t n_workers, waiting[HN_FLOW_STAGES], running[HN_FLOW_STAGES];
  bool cancelled, ending, telling;
  hn_flow_stats stats;
};

/* The oldest item that waits for the stage, or NULL. With the lock. */
static slot *oldest(hn_flow *f, int stage) {
  for (uint64_t n = f->stats.told; f->waiting[stage] && n < f->stats.submitted; n++) {
    slot *s = &f->slots[n % f->o.in_flight];
    if (s->at == stage && !s->running) return s;
  }
  return NULL;
}

/* Whether what the stage makes will find room before the next one. */
static bool room_after(const hn_flow *f, int stage) {
  const int next = stage + 1;
  return next == HN_FLOW_STAGES || f->waiting[next] + f->running[stage] < f->o.queue[next];
}

/* Tells what is done and next in order. With the lock, which it gives away around each call: one thread
 * tells, and sees what others finish meanwhile. */
static void tell(hn_flow *f) {
  if (f->telling) return;
  f->telling = true;
  for (slot *s; f->stats.told < f->stats.submitted; f->stats.told++) {
    const uint32_t place = (uint32_t)(f->stats.told % f->o.in_flight);
    s = &f->slots[place];
    if (s->at != HN_FLOW_STAGES) break;
    const uint64_t number = f->stats.told;
    pthread_mutex_unlock(&f->lock);
    f->work.tell(f->work.arg, number, place, s->status, &s->error);
    pthread_mutex_lock(&f->lock);
    if (s->status == HONE_ERROR_CANCELLED)
      f->stats.cancelled++;
    else if (s->status != HONE_OK)
      f->stats.failed++;
    s->at = AT_NOWHERE;
    pthread_cond_broadcast(&f->told);
  }
  f->telling = false;
  pthread_cond_broadcast(&f->told);
}

static void wait_for_stage(hn_flow *f, slot *s, int stage) {
  s->at = stage;
  if (++f->waiting[stage] > f->stats.most_waiting[stage]) f->stats.most_waiting[stage] = f->waiting[stage];
  pthread_cond_signal(&f->moved[stage]);
}

/* With the lock, which it gives away while the stage runs. */
static void run_stage(hn_flow *f, const worker *w, slot *s) {
  const uint32_t stage = w->stage;
  f->waiting[stage]--;
  f->running[stage]++;
  s->running = true;
  if (stage > 0) pthread_cond_signal(&f->moved[stage - 1]); /* there is room for one more */
  pthread_mutex_unlock(&f->lock);
  const uint64_t begin = hn_now_ns();
  const hone_status status = f->work.run(f->work.arg, stage, w->number, (uint32_t)(s - f->slots), &s->error);
  const uint64_t end = hn_now_ns();
  pthread_mutex_lock(&f->lock);
  f->running[stage]--;
  f->stats.busy_ns[stage] += end - begin;
  f->stats.items[stage]++;
  s->running = false;
  s->status = status;
  if (status == HONE_OK && stage + 1 < HN_FLOW_STAGES && f->cancelled)
    s->status = hn_fail(&s->error, HONE_ERROR_CANCELLED, "cancelled");
  if (s->status == HONE_OK && stage + 1 < HN_FLOW_STAGES) {
    wait_for_stage(f, s, (int)stage + 1);
  } else {
    s->at = HN_FLOW_STAGES;
    pthread_cond_signal(&f->moved[stage]); /* its room in the next queue is not needed */
    tell(f);
  }
}

static void *work(void *arg) {
  const worker *w = arg;
  hn_flow *f = w->of;
  pthread_mutex_lock(&f->lock);
  while (!f->ending) {
    slot *s = room_after(f, (int)w->stage) ? oldest(f, (int)w->stage) : NULL;
    if (s)
      run_stage(f, w, s);
    else
      pthread_cond_wait(&f->moved[w->stage], &f->lock);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

static hone_status check(const hn_flow_options *o, hone_error *error) {
  if (o->in_flight < 1 || o->in_flight > HN_FLOW_IN_FLIGHT)
    return hn_fail(error, HONE_ERROR_USAGE, "in flight: 1 to %d items, not %u", HN_FLOW_IN_FLIGHT,
                   o->in_flight);
  for (int i = 0; i < HN_FLOW_STAGES; i++) {
    if (o->workers[i] < 1 || o->workers[i] > HN_FLOW_WORKERS)
      return hn_fail(error, HONE_ERROR_USAGE, "a stage has 1 to %d workers, not %u", HN_FLOW_WORKERS,
                     o->workers[i]);
    if (i && !o->queue[i]) return hn_fail(error, HONE_ERROR_USAGE, "a queue has room for one item or more");
  }
  return HONE_OK;
}

static hone_status start(hn_flow *f, hone_error *error) {
  for (uint32_t stage = 0; stage < HN_FLOW_STAGES; stage++)
    for (uint32_t i = 0; i < f->o.workers[stage]; i++) {
      worker *w = &f->workers[f->n_workers];
      *w = (worker){.of = f, .stage = stage, .number = i};
      if (pthread_create(&w->thread, NULL, work, w) != 0)
        return hn_fail(error, HONE_ERROR_MEMORY, "worker %u of the pipeline could not be started",
                       f->n_workers);
      f->n_workers++;
    }
  return HONE_OK;
}

hone_status hn_flow_create(const hn_flow_options *o, const hn_flow_work *work_of, hn_flow **out,
                           hone_error *error) {
  *out = NULL;
  hone_status status = check(o, error);
  if (status != HONE_OK) return status;
  hn_flow *f = hn_calloc(1, sizeof *f);
  if (!f) return hn_fail_memory(error, sizeof *f, "a pipeline");
  f->o = *o;
  f->work = *work_of;
  pthread_mutex_init(&f->lock, NULL);
  pthread_cond_init(&f->told, NULL);
  for (int i = 0; i < HN_FLOW_STAGES; i++) pthread_cond_init(&f->moved[i], NULL);
  const size_t n = (size_t)o->workers[0] + o->workers[1] + o->workers[2];
  f->slots = hn_calloc(o->in_flight, sizeof *f->slots);
  f->workers = hn_calloc(n, sizeof *f->workers);
  if (!f->slots || !f->workers)
    status = hn_fail_memory(error, o->in_flight * sizeof *f->slots, "a pipeline's items");
  for (uint32_t i = 0; f->slots && i < o->in_flight; i++) f->slots[i].at = AT_NOWHERE;
  if (status == HONE_OK) status = start(f, error);
  if (status == HONE_OK)
    *out = f;
  else
    hn_flow_destroy(f);
  return status;
}

hone_status hn_flow_submit(hn_flow *f, void (*fill)(void *arg, uint32_t slot), void *arg, hone_error *error) {
  pthread_mutex_lock(&f->lock);
  while (!f->cancelled && f->stats.submitted - f->stats.told >= f->o.in_flight)
    pthread_cond_wait(&f->told, &f->lock);
  if (f->cancelled) {
    pthread_mutex_unlock(&f->lock);
    return hn_fail(error, HONE_ERROR_CANCELLED, "cancelled");
  }
  const uint32_t place = (uint32_t)(f->stats.submitted % f->o.in_flight);
  pthread_mutex_unlock(&f->lock); /* the slot is nobody's: only this thread submits */
  fill(arg, place);
  pthread_mutex_lock(&f->lock);
  slot *s = &f->slots[place];
  *s = (slot){0};
  const uint64_t in_flight = ++f->stats.submitted - f->stats.told;
  if (in_flight > f->stats.most_in_flight) f->stats.most_in_flight = (uint32_t)in_flight;
  if (f->cancelled) { /* while it was filled */
    s->at = HN_FLOW_STAGES;
    s->status = hn_fail(&s->error, HONE_ERROR_CANCELLED, "cancelled");
    tell(f);
  } else {
    wait_for_stage(f, s, 0);
  }
  pthread_mutex_unlock(&f->lock);
  return HONE_OK;
}

void hn_flow_cancel(hn_flow *f) {
  pthread_mutex_lock(&f->lock);
  f->cancelled = true;
  for (uint64_t n = f->stats.told; n < f->stats.submitted; n++) {
    slot *s = &f->slots[n % f->o.in_flight];
    if (s->running || s->at < 0 || s->at >= HN_FLOW_STAGES) continue;
    f->waiting[s->at]--;
    s->at = HN_FLOW_STAGES;
    s->status = hn_fail(&s->error, HONE_ERROR_CANCELLED, "cancelled");
  }
  tell(f);
  pthread_cond_broadcast(&f->told);
  pthread_mutex_unlock(&f->lock);
}

void hn_flow_drain(hn_flow *f) {
  pthread_mutex_lock(&f->lock);
  while (f->stats.told < f->stats.submitted || f->telling) pthread_cond_wait(&f->told, &f->lock);
  pthread_mutex_unlock(&f->lock);
}

void hn_flow_stats_get(hn_flow *f, hn_flow_stats *out) {
  pthread_mutex_lock(&f->lock);
  *out = f->stats;
  pthread_mutex_unlock(&f->lock);
}

void hn_flow_destroy(hn_flow *f) {
  if (!f) return;
  hn_flow_drain(f);
  pthread_mutex_lock(&f->lock);
  f->ending = true;
  for (int i = 0; i < HN_FLOW_STAGES; i++) pthread_cond_broadcast(&f->moved[i]);
  pthread_mutex_unlock(&f->lock);
  for (uint32_t i = 0; i < f->n_workers; i++) pthread_join(f->workers[i].thread, NULL);
  for (int i = 0; i < HN_FLOW_STAGES; i++) pthread_cond_destroy(&f->moved[i]);
  pthread_cond_destroy(&f->told);
  pthread_mutex_destroy(&f->lock);
  hn_free(f->workers);
  hn_free(f->slots);
  hn_free(f);
}
