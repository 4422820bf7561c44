#include "api/pipeline/flow.h"

#include "base/error.h"
#include "base/os.h"

#include <pthread.h>

enum { AT_NOWHERE = -1 };

typedef struct slot {
  int at;       /* the stage that it waits for or is in; HN_FLOW_STAGES: done; AT_NOWHERE: free */
  bool running; /* in that stage */
  hone_status status;
  uint64_t submitted_ns, since_ns; /* since when it waits there */
  hone_error error;
} slot;

typedef struct worker {
  hn_flow *of;
  uint32_t stage, number;
  pthread_t thread;
  hn_flow_item *item; /* [batch] what it has */
} worker;

struct hn_flow {
  hn_flow_options o;
  hn_flow_work work;
  pthread_mutex_t lock;
  pthread_cond_t moved[HN_FLOW_STAGES];  /* a worker of the stage may find something */
  pthread_cond_t parked[HN_FLOW_STAGES]; /* where those are that may not run */
  pthread_cond_t told;
  slot *slots; /* item n has slot n % in_flight */
  worker *workers;
  uint32_t n_workers;
  bool closed, cancelled, ending, telling;
  hn_flow_stats stats;
};

/* The areas grow until now. With the lock, before anything that they count changes. */
static uint64_t tick(hn_flow *f) {
  const uint64_t now = hn_now_ns(), passed = now - f->stats.now_ns;
  for (int i = 0; i < HN_FLOW_STAGES; i++) {
    f->stats.waiting_area[i] += passed * f->stats.waiting[i];
    f->stats.running_area[i] += passed * f->stats.running[i];
    f->stats.active_area[i] += passed * f->stats.active[i];
  }
  return f->stats.now_ns = now;
}

/* How many items a worker of the stage can take now; 0: it waits. With the lock. */
static uint32_t ready(const hn_flow *f, uint32_t stage) {
  const hn_flow_stats *s = &f->stats;
  const uint32_t batch = f->o.batch[stage], next = stage + 1;
  uint32_t n = s->waiting[stage], before = 0;
  if (n > batch) n = batch;
  for (uint32_t i = 0; i < stage; i++) before += s->waiting[i] + s->running[i];
  if (n < batch && before) return 0; /* there will be more */
  if (next == HN_FLOW_STAGES) return n;
  /* Every run of the stage may bring a whole batch: its room is kept. */
  return s->waiting[next] + s->running[stage] * batch + n <= f->o.queue[next] ? n : 0;
}

static void wake(pthread_cond_t *condition, uint32_t n) {
  if (n == 1)
    pthread_cond_signal(condition);
  else
    pthread_cond_broadcast(condition);
}

/* Tells what is done and next in order. With the lock, which it gives away around each call: one thread
 * tells, and sees what others finish meanwhile. */
static void tell(hn_flow *f) {
  if (f->telling) return;
  f->telling = true;
  while (f->stats.told < f->stats.submitted) {
    const uint64_t number = f->stats.told;
    const uint32_t place = (uint32_t)(number % f->o.in_flight);
    slot *s = &f->slots[place];
    if (s->at != HN_FLOW_STAGES) break;
    const uint64_t now = hn_now_ns();
    f->stats.held_ns += now - s->since_ns;
    f->stats.whole_ns += now - s->submitted_ns;
    pthread_mutex_unlock(&f->lock);
    f->work.tell(f->work.arg, number, place, s->status, &s->error);
    pthread_mutex_lock(&f->lock);
    if (s->status == HONE_ERROR_CANCELLED)
      f->stats.cancelled++;
    else if (s->status != HONE_OK)
      f->stats.failed++;
    s->at = AT_NOWHERE;
    f->stats.told++;
    pthread_cond_broadcast(&f->told);
  }
  f->telling = false;
  pthread_cond_broadcast(&f->told);
}

static void wait_for_stage(hn_flow *f, slot *s, int stage, uint64_t now) {
  s->at = stage;
  s->since_ns = now;
  if (++f->stats.waiting[stage] > f->stats.most_waiting[stage])
    f->stats.most_waiting[stage] = f->stats.waiting[stage];
  pthread_cond_signal(&f->moved[stage]);
}

static void done(hn_flow *f, slot *s, hone_status status, uint64_t now) {
  (void)f;
  s->at = HN_FLOW_STAGES;
  s->status = status;
  s->since_ns = now;
}

/* The n oldest items that wait for the stage, into the worker's hands. With the lock. */
static void take(hn_flow *f, const worker *w, uint32_t n) {
  uint32_t got = 0;
  tick(f);
  for (uint64_t k = f->stats.told; got < n && k < f->stats.submitted; k++) {
    const uint32_t place = (uint32_t)(k % f->o.in_flight);
    slot *s = &f->slots[place];
    if (s->at != (int)w->stage || s->running) continue;
    s->running = true;
    w->item[got++] = (hn_flow_item){.slot = place, .status = HONE_OK, .error = &s->error};
  }
  f->stats.waiting[w->stage] -= n;
  f->stats.running[w->stage]++;
}

/* With the lock, which it gives away while the stage runs. */
static void run_stage(hn_flow *f, const worker *w, uint32_t n) {
  const uint32_t stage = w->stage;
  take(f, w, n);
  if (stage > 0) wake(&f->moved[stage - 1], n); /* there is room for so many more */
  pthread_mutex_unlock(&f->lock);
  const uint64_t begin = hn_now_ns();
  f->work.run(f->work.arg, stage, w->number, w->item, n);
  pthread_mutex_lock(&f->lock);
  const uint64_t end = tick(f);
  f->stats.running[stage]--;
  f->stats.busy_ns[stage] += end - begin;
  f->stats.runs[stage]++;
  f->stats.items[stage] += n;
  bool any = false;
  for (uint32_t i = 0; i < n; i++) {
    hn_flow_item *item = &w->item[i];
    slot *s = &f->slots[item->slot];
    f->stats.waited_ns[stage] += begin - s->since_ns;
    f->stats.spent_ns[stage] += end - begin;
    s->running = false;
    if (item->status == HONE_OK && stage + 1 < HN_FLOW_STAGES && f->cancelled)
      item->status = hn_fail(&s->error, HONE_ERROR_CANCELLED, "cancelled");
    if (item->status == HONE_OK && stage + 1 < HN_FLOW_STAGES) {
      wait_for_stage(f, s, (int)stage + 1, end);
    } else {
      done(f, s, item->status, end);
      any = true;
    }
  }
  if (n < f->o.batch[stage] || any) wake(&f->moved[stage], f->o.batch[stage]); /* room that was not needed */
  /* Who waits for a whole batch may have waited for this one. */
  for (uint32_t i = stage + 1; i < HN_FLOW_STAGES; i++)
    if (f->o.batch[i] > 1) pthread_cond_broadcast(&f->moved[i]);
  if (any) tell(f);
}

static void *work(void *arg) {
  const worker *w = arg;
  hn_flow *f = w->of;
  pthread_mutex_lock(&f->lock);
  while (!f->ending) {
    const bool may = w->number < f->stats.active[w->stage];
    const uint32_t n = may ? ready(f, w->stage) : 0;
    if (n)
      run_stage(f, w, n);
    else
      pthread_cond_wait(may ? &f->moved[w->stage] : &f->parked[w->stage], &f->lock);
  }
  pthread_mutex_unlock(&f->lock);
  return NULL;
}

static hone_status check(hn_flow_options *o, hone_error *error) {
  if (o->in_flight < 1 || o->in_flight > HN_FLOW_IN_FLIGHT)
    return hn_fail(error, HONE_ERROR_USAGE, "in flight: 1 to %d items, not %u", HN_FLOW_IN_FLIGHT,
                   o->in_flight);
  for (int i = 0; i < HN_FLOW_STAGES; i++) {
    if (!o->batch[i]) o->batch[i] = 1;
    if (o->batch[i] > HN_FLOW_BATCH)
      return hn_fail(error, HONE_ERROR_USAGE, "a worker takes at most %d items at once, not %u",
                     HN_FLOW_BATCH, o->batch[i]);
    if (o->workers[i] < 1 || o->workers[i] > HN_FLOW_WORKERS)
      return hn_fail(error, HONE_ERROR_USAGE, "a stage has 1 to %d workers, not %u", HN_FLOW_WORKERS,
                     o->workers[i]);
    if (i && (o->queue[i] < o->batch[i] || o->queue[i] < o->batch[i - 1]))
      return hn_fail(error, HONE_ERROR_USAGE, "a queue has room for what is put there or taken away at once");
  }
  return HONE_OK;
}

static hone_status start(hn_flow *f, hone_error *error) {
  for (uint32_t stage = 0; stage < HN_FLOW_STAGES; stage++)
    for (uint32_t i = 0; i < f->o.workers[stage]; i++) {
      worker *w = &f->workers[f->n_workers];
      *w = (worker){.of = f, .stage = stage, .number = i};
      w->item = hn_calloc(f->o.batch[stage], sizeof *w->item);
      if (!w->item) return hn_fail_memory(error, f->o.batch[stage] * sizeof *w->item, "a worker");
      if (pthread_create(&w->thread, NULL, work, w) != 0) {
        hn_free(w->item);
        return hn_fail(error, HONE_ERROR_MEMORY, "worker %u of the pipeline could not be started",
                       f->n_workers);
      }
      f->n_workers++;
    }
  return HONE_OK;
}

hone_status hn_flow_create(const hn_flow_options *options, const hn_flow_work *work_of, hn_flow **out,
                           hone_error *error) {
  hn_flow_options o = *options;
  *out = NULL;
  hone_status status = check(&o, error);
  if (status != HONE_OK) return status;
  hn_flow *f = hn_calloc(1, sizeof *f);
  if (!f) return hn_fail_memory(error, sizeof *f, "a pipeline");
  f->o = o;
  f->work = *work_of;
  f->stats.begin_ns = f->stats.now_ns = hn_now_ns();
  pthread_mutex_init(&f->lock, NULL);
  pthread_cond_init(&f->told, NULL);
  for (int i = 0; i < HN_FLOW_STAGES; i++) {
    pthread_cond_init(&f->moved[i], NULL);
    pthread_cond_init(&f->parked[i], NULL);
    f->stats.active[i] = o.workers[i];
  }
  const size_t n = (size_t)o.workers[0] + o.workers[1] + o.workers[2];
  f->slots = hn_calloc(o.in_flight, sizeof *f->slots);
  f->workers = hn_calloc(n, sizeof *f->workers);
  if (!f->slots || !f->workers)
    status = hn_fail_memory(error, o.in_flight * sizeof *f->slots, "a pipeline's items");
  for (uint32_t i = 0; f->slots && i < o.in_flight; i++) f->slots[i].at = AT_NOWHERE;
  if (status == HONE_OK) status = start(f, error);
  if (status == HONE_OK)
    *out = f;
  else
    hn_flow_destroy(f);
  return status;
}

hone_status hn_flow_submit(hn_flow *f, void (*fill)(void *arg, uint32_t slot), void *arg, hone_error *error) {
  pthread_mutex_lock(&f->lock);
  while (!f->closed && f->stats.submitted - f->stats.told >= f->o.in_flight)
    pthread_cond_wait(&f->told, &f->lock);
  if (f->closed) {
    pthread_mutex_unlock(&f->lock);
    return hn_fail(error, HONE_ERROR_CANCELLED, "cancelled");
  }
  const uint32_t place = (uint32_t)(f->stats.submitted % f->o.in_flight);
  pthread_mutex_unlock(&f->lock); /* the slot is nobody's: only this thread submits */
  fill(arg, place);
  pthread_mutex_lock(&f->lock);
  slot *s = &f->slots[place];
  const uint64_t now = tick(f);
  *s = (slot){.submitted_ns = now};
  const uint64_t in_flight = ++f->stats.submitted - f->stats.told;
  if (in_flight > f->stats.most_in_flight) f->stats.most_in_flight = (uint32_t)in_flight;
  if (f->cancelled) { /* while it was filled */
    done(f, s, hn_fail(&s->error, HONE_ERROR_CANCELLED, "cancelled"), now);
    tell(f);
  } else {
    wait_for_stage(f, s, 0, now);
  }
  pthread_mutex_unlock(&f->lock);
  return HONE_OK;
}

void hn_flow_set_workers(hn_flow *f, uint32_t stage, uint32_t n) {
  pthread_mutex_lock(&f->lock);
  tick(f);
  f->stats.active[stage] = n < 1 ? 1 : n < f->o.workers[stage] ? n : f->o.workers[stage];
  /* All of them: a signal that one got who may not run any more would be lost. */
  pthread_cond_broadcast(&f->moved[stage]);
  pthread_cond_broadcast(&f->parked[stage]);
  pthread_mutex_unlock(&f->lock);
}

void hn_flow_close(hn_flow *f) {
  pthread_mutex_lock(&f->lock);
  f->closed = true;
  pthread_cond_broadcast(&f->told);
  pthread_mutex_unlock(&f->lock);
}

void hn_flow_cancel(hn_flow *f) {
  pthread_mutex_lock(&f->lock);
  f->closed = f->cancelled = true;
  const uint64_t now = tick(f);
  for (uint64_t n = f->stats.told; n < f->stats.submitted; n++) {
    slot *s = &f->slots[n % f->o.in_flight];
    if (s->running || s->at < 0 || s->at >= HN_FLOW_STAGES) continue;
    f->stats.waiting[s->at]--;
    f->stats.waited_ns[s->at] += now - s->since_ns;
    done(f, s, hn_fail(&s->error, HONE_ERROR_CANCELLED, "cancelled"), now);
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
  tick(f);
  f->stats.in_flight = (uint32_t)(f->stats.submitted - f->stats.told);
  *out = f->stats;
  pthread_mutex_unlock(&f->lock);
}

void hn_flow_destroy(hn_flow *f) {
  if (!f) return;
  hn_flow_drain(f);
  pthread_mutex_lock(&f->lock);
  f->ending = true;
  for (int i = 0; i < HN_FLOW_STAGES; i++) {
    pthread_cond_broadcast(&f->moved[i]);
    pthread_cond_broadcast(&f->parked[i]);
  }
  pthread_mutex_unlock(&f->lock);
  for (uint32_t i = 0; i < f->n_workers; i++) {
    pthread_join(f->workers[i].thread, NULL);
    hn_free(f->workers[i].item);
  }
  for (int i = 0; i < HN_FLOW_STAGES; i++) {
    pthread_cond_destroy(&f->moved[i]);
    pthread_cond_destroy(&f->parked[i]);
  }
  pthread_cond_destroy(&f->told);
  pthread_mutex_destroy(&f->lock);
  hn_free(f->workers);
  hn_free(f->slots);
  hn_free(f);
}
