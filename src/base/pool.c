#include "base/pool.h"

#include "base/denormals.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"

#include <hone/session.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A job is open while tasks are left to hand out. Workers join an open job by counting themselves in `state`;
 * the caller closes it when the tasks are gone and waits only for those that joined. A worker that sleeps, or
 * that the system has descheduled, therefore never delays a job.
 *
 * Every thread has its own share of the tasks, the same part of every job, and helps the others only when it
 * is through with it: the rows of a tensor that one step wrote are then read by the next step on the same
 * core. A line that crosses costs as much as thirty that do not.
 *
 * Workers take on the floating-point mode of the thread that calls. */
enum { OPEN = 1, JOIN = 2 }; /* state: bit 0 open, bits 1-15 workers joined, bits 16-63 job number */

/* Two lines: processors fetch lines in pairs. */
typedef struct share {
  _Alignas(128) _Atomic int64_t next; /* next task */
  int64_t end;
  void (*fn)(void *, int64_t, uint32_t);
  void *arg;
} share;

struct hn_pool {
  uint32_t threads, started;
  pthread_t *thread;
  share *shares;         /* [threads] */
  uint32_t float_mode;   /* of the caller of this job */
  _Atomic uint32_t most; /* workers that may join it */
  _Alignas(128) _Atomic uint64_t state;
  _Alignas(128) _Atomic uint32_t wake; /* futex word: count of wake-ups */
  _Atomic uint32_t sleepers;
  _Atomic bool stop;
  _Atomic bool busy;                      /* a caller owns the pool */
  _Alignas(128) _Atomic uint32_t callers; /* between enter and leave */
};

typedef struct worker {
  hn_pool *pool;
  uint32_t index;
} worker;

static const uint64_t spin_ns = 60000;

static inline void relax(void) { __builtin_ia32_pause(); }

static void futex(_Atomic uint32_t *word, int op, uint32_t value) {
  syscall(SYS_futex, (uint32_t *)word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void work(hn_pool *p, uint32_t thread) {
  for (uint32_t k = 0, t = thread; k < p->threads; k++, t = t + 1 == p->threads ? 0 : t + 1) {
    share *s = &p->shares[t];
    while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end) {
      int64_t task = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
      if (task >= s->end) break;
      s->fn(s->arg, task, thread);
    }
  }
}

/* A job that a worker may join: `most` is written before the job is opened, so what is read here is that of
 * this job or, when the job is over, of one that the exchange in join_next will not find. */
static bool may_join(hn_pool *p, uint64_t state, uint64_t served) {
  return (state & OPEN) && (state >> 16) != served &&
         (state & 0xfffe) / JOIN < atomic_load_explicit(&p->most, memory_order_relaxed);
}

/* Waits until a job that was not yet served is open, or the pool stops. Returns its joined state or 0. */
static bool join_next(hn_pool *p, uint64_t *served) {
  uint64_t deadline = 0;
  for (uint32_t spins = 0;; spins++) {
    uint64_t s = atomic_load_explicit(&p->state, memory_order_acquire);
    if (may_join(p, s, *served)) {
      if (atomic_compare_exchange_weak_explicit(&p->state, &s, s + JOIN, memory_order_acq_rel,
                                                memory_order_relaxed)) {
        *served = s >> 16;
        return true;
      }
      continue;
    }
    if (atomic_load_explicit(&p->stop, memory_order_acquire)) return false;
    relax();
    if (spins % 64 == 63) {
      uint64_t now = hn_now_ns();
      if (!deadline) deadline = now + spin_ns;
      if (now < deadline) continue;
      uint32_t seen = atomic_load(&p->wake);
      atomic_fetch_add(&p->sleepers, 1);
      s = atomic_load(&p->state);
      if (!may_join(p, s, *served) && !atomic_load(&p->stop)) futex(&p->wake, FUTEX_WAIT, seen);
      atomic_fetch_sub(&p->sleepers, 1);
      deadline = 0;
    }
  }
}

static void *worker_main(void *arg) {
  worker w = *(worker *)arg;
  hn_free(arg);
  uint64_t served = 0;
  while (join_next(w.pool, &served)) {
    if (hn_float_mode() != w.pool->float_mode) hn_set_float_mode(w.pool->float_mode);
    work(w.pool, w.index);
    atomic_fetch_sub_explicit(&w.pool->state, JOIN, memory_order_release);
  }
  return NULL;
}

hone_status hn_pool_create(uint32_t threads, hn_pool **out, hone_error *error) {
  *out = NULL;
  if (threads < 1 || threads > HONE_MAX_THREADS)
    return hn_fail(error, HONE_ERROR_USAGE, "thread count %u is not in 1..%d", threads, HONE_MAX_THREADS);
  hn_pool *p = hn_aligned(128, sizeof *p);
  if (!p) return hn_fail_memory(error, sizeof *p, "the thread pool");
  memset(p, 0, sizeof *p);
  p->threads = threads;
  atomic_store(&p->state, 1u << 16); /* closed job number 1; workers have served 0, but it is not open */
  p->thread = hn_calloc(threads, sizeof *p->thread);
  p->shares = hn_aligned(128, threads * sizeof *p->shares);
  if (!p->thread || !p->shares) {
    hn_pool_destroy(p);
    return hn_fail_memory(error, threads * sizeof(share), "the thread pool");
  }
  memset(p->shares, 0, threads * sizeof *p->shares);
  for (uint32_t i = 1; i < threads; i++) {
    worker *w = hn_malloc(sizeof *w);
    int e = 1;
    if (w) {
      *w = (worker){p, i};
      e = pthread_create(&p->thread[i], NULL, worker_main, w);
      if (e) hn_free(w);
    }
    if (e) {
      hn_pool_destroy(p);
      return hn_fail(error, HONE_ERROR_MEMORY, "cannot start thread %u of %u", i + 1, threads);
    }
    p->started++;
  }
  *out = p;
  return HONE_OK;
}

void hn_pool_destroy(hn_pool *p) {
  if (!p) return;
  atomic_store_explicit(&p->stop, true, memory_order_release);
  atomic_fetch_add(&p->wake, 1);
  futex(&p->wake, FUTEX_WAKE, INT_MAX);
  for (uint32_t i = 1; i <= p->started; i++) pthread_join(p->thread[i], NULL);
  hn_free(p->thread);
  hn_free(p->shares);
  hn_free(p);
}

uint32_t hn_pool_threads(const hn_pool *p) { return p ? p->threads : 1; }

void hn_pool_enter(hn_pool *p) {
  if (p) atomic_fetch_add_explicit(&p->callers, 1, memory_order_relaxed);
}

void hn_pool_leave(hn_pool *p) {
  if (p) atomic_fetch_sub_explicit(&p->callers, 1, memory_order_relaxed);
}

/* Workers that a job may have beside its caller: the other callers have a thread each. */
static uint32_t free_workers(hn_pool *p) {
  const uint32_t callers = atomic_load_explicit(&p->callers, memory_order_relaxed);
  const uint32_t beside = callers > 1 ? callers : 1;
  return p->threads > beside ? p->threads - beside : 0;
}

void hn_pool_parallel(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg) {
  hn_pool *p = pool;
  if (tasks <= 0) return;
  const uint32_t most = p && tasks > 1 ? free_workers(p) : 0;
  if (!most || atomic_exchange_explicit(&p->busy, true, memory_order_acquire)) {
    for (int64_t i = 0; i < tasks; i++) fn(arg, i, 0);
    return;
  }
  p->float_mode = hn_float_mode();
  for (uint32_t i = 0; i < p->threads; i++) {
    share *own = &p->shares[i];
    own->fn = fn;
    own->arg = arg;
    own->end = tasks / p->threads * (i + 1) + tasks % p->threads * (i + 1) / p->threads;
    atomic_store_explicit(&own->next, i ? p->shares[i - 1].end : 0, memory_order_relaxed);
  }
  atomic_store_explicit(&p->most, most, memory_order_relaxed);
  uint64_t job = (atomic_load_explicit(&p->state, memory_order_relaxed) >> 16) + 1;
  atomic_store(&p->state, job << 16 | OPEN);
  if (atomic_load(&p->sleepers)) {
    atomic_fetch_add(&p->wake, 1);
    futex(&p->wake, FUTEX_WAKE, most);
  }
  work(p, 0);
  uint64_t s = atomic_fetch_and_explicit(&p->state, ~(uint64_t)OPEN, memory_order_acq_rel);
  for (uint32_t spins = 0; s & 0xfffe; spins++) {
    relax();
    if (spins > 20000) sched_yield(), spins = 0;
    s = atomic_load_explicit(&p->state, memory_order_acquire);
  }
  atomic_store_explicit(&p->busy, false, memory_order_release);
}
