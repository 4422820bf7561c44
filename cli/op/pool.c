/* See pool.h. */
#include "cli/op/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 16, WATCHED_TASKS = 256, WATCHED_BYTES = 1 << 20 };

typedef void task_fn(void *arg, int64_t task, uint32_t thread);

/* ------------------------------------------------------------------ real threads */

typedef struct crew {
  atomic_int_fast64_t next;
  int64_t tasks;
  task_fn *fn;
  void *arg;
} crew;

typedef struct member {
  crew *crew;
  uint32_t thread;
  pthread_t id;
  bool started;
} member;

static void *work(void *of) {
  const member *m = of;
  for (int64_t t; (t = atomic_fetch_add(&m->crew->next, 1)) < m->crew->tasks;)
    m->crew->fn(m->crew->arg, t, m->thread);
  return NULL;
}

static void on_threads(const op_pool *p, int64_t tasks, task_fn *fn, void *arg) {
  crew c = {.tasks = tasks, .fn = fn, .arg = arg};
  member m[MOST_THREADS] = {0};
  const uint32_t n = p->threads < MOST_THREADS ? p->threads : MOST_THREADS;
  for (uint32_t i = 0; i < n; i++) {
    m[i] = (member){.crew = &c, .thread = i};
    m[i].started = i && pthread_create(&m[i].id, NULL, work, &m[i]) == 0;
  }
  (void)work(&m[0]);
  for (uint32_t i = 1; i < n; i++)
    if (m[i].started) pthread_join(m[i].id, NULL);
}

/* ------------------------------------------------------------------ watching the workspace */

typedef struct watch {
  uint8_t *before; /* the workspace as a task found it */
  uint8_t *writer; /* by byte: 1 + the thread that wrote it; 0: nobody */
} watch;

static void note_writes(op_pool *p, const watch *w, uint32_t thread) {
  const uint8_t *now = (const uint8_t *)p->workspace->data;
  for (size_t i = 0; i < p->workspace->bytes; i++) {
    if (now[i] == w->before[i]) continue;
    if (w->writer[i] && w->writer[i] != thread + 1) p->shared = true;
    w->writer[i] = (uint8_t)(thread + 1);
  }
  memcpy(w->before, now, p->workspace->bytes);
}

/* ------------------------------------------------------------------ orders */

static void shuffled(op_pool *p, int64_t tasks, task_fn *fn, void *arg) {
  int64_t *order = malloc((size_t)tasks * sizeof *order);
  watch w = {0};
  if (!order) return;
  for (int64_t i = 0; i < tasks; i++) order[i] = i;
  for (int64_t i = tasks; i-- > 1;) {
    const int64_t j = (int64_t)(op_next(&p->random) % (uint64_t)(i + 1)), was = order[i];
    order[i] = order[j];
    order[j] = was;
  }
  const op_buffer *ws = p->workspace;
  if (ws && ws->bytes && ws->bytes <= WATCHED_BYTES && tasks <= WATCHED_TASKS && p->threads > 1) {
    w.before = malloc(ws->bytes);
    w.writer = calloc(ws->bytes, 1);
    if (w.before) memcpy(w.before, ws->data, ws->bytes);
  }
  for (int64_t i = 0; i < tasks; i++) {
    const uint32_t thread = op_below(&p->random, p->threads);
    fn(arg, order[i], thread);
    if (w.before && w.writer) note_writes(p, &w, thread);
  }
  free(w.before);
  free(w.writer);
  free(order);
}

void op_pool_parallel(void *pool, int64_t tasks, task_fn *fn, void *arg) {
  op_pool *p = pool;
  if (tasks <= 0) return;
  switch (p->order) {
  case OP_FORWARD:
    for (int64_t i = 0; i < tasks; i++) fn(arg, i, 0);
    break;
  case OP_BACKWARD:
    for (int64_t i = tasks; i-- > 0;) fn(arg, i, p->threads - 1);
    break;
  case OP_SHUFFLED: shuffled(p, tasks, fn, arg); break;
  case OP_THREADS: on_threads(p, tasks, fn, arg); break;
  }
}
