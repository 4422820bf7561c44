/* Runs of a model: requests wait in a row; a worker takes the first, and with it those that fit into the same
 * run. What waits while a run is under way is the next run's batch, so that batches grow with the load by
 * themselves; a delay only makes them larger when there is little. */
#include "api/serve/serve.h"
#include "base/error.h"
#include "base/os.h"

#include <string.h>
#include <time.h>

enum { MOST_SHARING = 256 };

typedef struct runner {
  hn_served *m;
  const hn_replica *at;
  hone_context *context;  /* of a fixed plan */
  const hone_tensor **in; /* [inputs] */
  hone_tensor *joined;    /* [inputs] data owned */
  size_t *room;
  hn_pad *rows; /* [outputs] how they follow the batch, where several share a run */
  hone_shapes_answer *answer;
} runner;

/* ------------------------------------------------------------------ what is run together */

/* Do they differ in the first dimension alone? */
static bool alike(const hn_served *m, const hn_ask *a, const hn_ask *b) {
  for (uint32_t i = 0; i < m->n_in; i++)
    for (int32_t k = 1; k < m->in[i].rank; k++)
      if (a->in[i].desc.dim[k] != b->in[i].desc.dim[k]) return false;
  return true;
}

/* Takes what fits to the first of `group` out of the row; with the lock. */
static uint32_t gather(hn_served *m, hn_ask **group, uint32_t n, int64_t *samples) {
  for (hn_ask **at = &m->first; *at && n < MOST_SHARING;) {
    hn_ask *ask = *at;
    if (*samples + ask->samples > m->max_batch || !alike(m, group[0], ask)) {
      at = &ask->next;
      continue;
    }
    *at = ask->next;
    if (m->last == &ask->next) m->last = at;
    *samples += ask->samples;
    group[n++] = ask;
    m->waiting--;
  }
  return n;
}

/* The next run, with the lock; 0: the model is closed. */
static uint32_t take(hn_served *m, hn_ask **group, int64_t *samples) {
  while (!m->first && !m->closing) pthread_cond_wait(&m->arrived, &m->lock);
  if (!m->first) return 0;
  group[0] = m->first;
  m->first = group[0]->next;
  if (!m->first) m->last = &m->first;
  m->waiting--;
  *samples = group[0]->samples;
  if (!m->shares) return 1;
  const uint64_t until = group[0]->arrived + m->delay;
  const struct timespec at = {.tv_sec = (time_t)(until / 1000000000u),
                              .tv_nsec = (long)(until % 1000000000u)};
  uint32_t n = gather(m, group, 1, samples);
  while (m->delay && *samples < m->max_batch && n < MOST_SHARING && !m->closing &&
         pthread_cond_timedwait(&m->arrived, &m->lock, &at) == 0)
    n = gather(m, group, n, samples);
  return n;
}

/* ------------------------------------------------------------------ a run */

static hone_status join(runner *r, hn_ask *const *group, uint32_t n, int64_t samples, hone_error *error) {
  const hn_served *m = r->m;
  for (uint32_t i = 0; i < m->n_in; i++) {
    r->in[i] = &group[0]->in[i];
    if (n == 1) continue;
    hone_tensor_desc d = r->in[i]->desc;
    d.dim[0] = samples;
    hone_tensor *t = &r->joined[i];
    t->desc = hone_desc(d.dtype, d.rank, d.dim);
    const size_t bytes = (size_t)hone_desc_bytes(&t->desc);
    if (r->room[i] < bytes) {
      hn_free(t->data);
      t->data = hn_aligned(HN_MEM_ALIGN, bytes);
      r->room[i] = t->data ? bytes : 0;
      if (!t->data) return hn_fail_memory(error, bytes, "a batch of requests");
    }
    char *to = t->data;
    for (uint32_t k = 0; k < n; k++) {
      const size_t part = (size_t)hone_desc_bytes(&group[k]->in[i].desc);
      memcpy(to, group[k]->in[i].data, part);
      to += part;
    }
    r->in[i] = t;
  }
  return HONE_OK;
}

static const hone_tensor *output(const runner *r, uint32_t i) {
  return r->answer ? hone_shapes_answer_output(r->answer, i) : hone_context_output(r->context, i);
}

/* A copy of its own, texts in the same block. */
static hone_status copy(const hone_tensor *from, const hone_tensor_desc *desc, size_t skip, hone_tensor *to,
                        hone_error *error) {
  const int64_t count = hone_desc_count(desc);
  size_t bytes = (size_t)hone_desc_bytes(desc), texts = 0;
  const hone_string *s = from->data;
  const bool points = desc->dtype == HONE_DTYPE_STRING;
  for (int64_t i = 0; points && i < count; i++) texts += s[i].len;
  to->desc = *desc;
  to->data = hn_aligned(HN_MEM_ALIGN, bytes + texts + 1);
  if (!to->data) return hn_fail_memory(error, bytes, "an output");
  if (bytes) memcpy(to->data, (const char *)from->data + skip, bytes);
  char *at = (char *)to->data + bytes;
  for (int64_t i = 0; points && i < count; i++) {
    ((hone_string *)to->data)[i].ptr = at;
    if (s[i].len) memcpy(at, s[i].ptr, s[i].len);
    at += s[i].len;
  }
  *at = 0;
  return HONE_OK;
}

/* Is the output as long as its parts are together? */
static bool divides(const hone_tensor_desc *d, const hn_pad *rows, int64_t samples) {
  return rows->kind != HN_PAD_ROWS || (d->rank > 0 && rows->each >= 0 && d->dim[0] == rows->each * samples);
}

/* Each request's part of the outputs. */
static hone_status part(runner *r, hn_ask *const *group, uint32_t n, int64_t samples, hone_error *error) {
  const hn_served *m = r->m;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < m->n_out && status == HONE_OK; i++) {
    const hone_tensor *whole = output(r, i);
    const hn_pad *rows = n > 1 ? &r->rows[i] : &(hn_pad){0};
    size_t skip = 0;
    if (!divides(&whole->desc, rows, samples))
      return hn_fail(error, HONE_ERROR_INTERNAL, "output '%.80s' has not the size that was proved",
                     m->out[i].name);
    for (uint32_t k = 0; k < n && status == HONE_OK; k++) {
      hone_tensor_desc d = whole->desc;
      if (rows->kind == HN_PAD_ROWS) d.dim[0] = rows->each * group[k]->samples;
      d = hone_desc(d.dtype, d.rank, d.dim);
      status = copy(whole, &d, skip, &group[k]->out[i], error);
      if (rows->kind == HN_PAD_ROWS) skip += (size_t)hone_desc_bytes(&d);
    }
  }
  return status;
}

static hone_status run(runner *r, hn_ask *const *group, uint32_t n, int64_t samples, hone_error *error) {
  hn_served *m = r->m;
  const hone_run_options o = {.max_seconds = m->server->options.max_seconds};
  hone_status status = join(r, group, n, samples, error);
  const uint64_t start = hn_now_ns();
  if (status == HONE_OK)
    status = r->at->shapes ? hone_shapes_run(r->at->shapes, r->in, &o, &r->answer, error)
                           : hone_context_run(r->context, r->in, &o, error);
  const uint64_t end = hn_now_ns();
  if (status == HONE_OK) status = part(r, group, n, samples, error);
  hone_shapes_answer_release(r->answer);
  r->answer = NULL;
  if (status == HONE_OK) hn_served_counted_run(m, samples, 1e-9 * (double)(end - start));
  return status;
}

static void drop_outputs(const hn_served *m, hn_ask *ask) {
  for (uint32_t i = 0; i < m->n_out; i++) {
    hn_free(ask->out[i].data);
    ask->out[i] = (hone_tensor){0};
  }
}

static void run_alone(runner *r, hn_ask *ask) {
  hone_error error = {0};
  ask->status = run(r, &ask, 1, ask->samples, &error);
  ask->error = error;
  if (ask->status != HONE_OK) drop_outputs(r->m, ask);
}

/* What one request holds may be wrong (an index outside of a table): the others are not to suffer from it.
 */
static void run_group(runner *r, hn_ask *const *group, uint32_t n, int64_t samples) {
  hone_error error = {0};
  const hone_status status = n > 1 ? run(r, group, n, samples, &error) : HONE_OK;
  for (uint32_t k = 0; k < n; k++) {
    group[k]->status = status;
    if (n > 1 && status == HONE_OK) continue;
    drop_outputs(r->m, group[k]);
    run_alone(r, group[k]);
  }
}

/* All but the first go back to the head of the row, for whoever is free; how many are left. */
static uint32_t apart(hn_served *m, hn_ask *const *group, uint32_t n) {
  pthread_mutex_lock(&m->lock);
  for (uint32_t k = n - 1; k > 0; k--) {
    group[k]->next = m->first;
    if (!m->first) m->last = &group[k]->next;
    m->first = group[k];
    m->waiting++;
  }
  pthread_cond_broadcast(&m->arrived);
  pthread_mutex_unlock(&m->lock);
  return 1;
}

/* ------------------------------------------------------------------ workers */

static void close_runner(runner *r) {
  for (uint32_t i = 0; r->joined && i < r->m->n_in; i++) hn_free(r->joined[i].data);
  hn_free(r->joined);
  hn_free(r->room);
  hn_free(r->rows);
  hn_free((void *)r->in);
  hone_context_destroy(r->context);
}

static hone_status open_runner(hn_served *m, const hn_replica *at, runner *r, hone_error *error) {
  *r = (runner){.m = m, .at = at};
  r->in = hn_calloc(m->n_in + 1, sizeof *r->in);
  r->joined = hn_calloc(m->n_in + 1, sizeof *r->joined);
  r->room = hn_calloc(m->n_in + 1, sizeof *r->room);
  r->rows = hn_calloc(m->n_out + 1, sizeof *r->rows);
  if (!r->in || !r->joined || !r->room || !r->rows)
    return hn_fail_memory(error, sizeof *r, "a server's worker");
  return at->plan ? hone_context_create(at->plan, &r->context, error) : HONE_OK;
}

static void *work(void *arg) {
  runner *r = arg;
  hn_served *m = r->m;
  hn_ask *group[MOST_SHARING];
  int64_t samples = 0;
  pthread_mutex_lock(&m->lock);
  for (uint32_t n; (n = take(m, group, &samples)) > 0;) {
    const uint64_t now = hn_now_ns();
    for (uint32_t k = 0; k < n; k++) group[k]->begun = now;
    pthread_mutex_unlock(&m->lock);
    if (n > 1 && !hn_parts_hold(m->parts, group, n, samples, r->rows)) n = apart(m, group, n);
    run_group(r, group, n, samples);
    pthread_mutex_lock(&m->lock);
    for (uint32_t k = 0; k < n; k++) {
      group[k]->ready = true;
      pthread_cond_signal(&group[k]->done);
    }
  }
  pthread_mutex_unlock(&m->lock);
  close_runner(r);
  hn_free(r);
  return NULL;
}

hone_status hn_served_workers(hn_served *m, uint32_t each, hone_error *error) {
  const uint32_t n = each * m->n_replicas;
  hone_status status = HONE_OK;
  m->worker = hn_calloc(n, sizeof *m->worker);
  if (!m->worker) return hn_fail_memory(error, n * sizeof *m->worker, "a server's workers");
  for (uint32_t i = 0; i < n && status == HONE_OK; i++) {
    runner *r = hn_calloc(1, sizeof *r);
    status = r ? open_runner(m, &m->replica[i % m->n_replicas], r, error)
               : hn_fail_memory(error, sizeof *r, "a server's worker");
    if (status == HONE_OK && pthread_create(&m->worker[i], NULL, work, r) != 0)
      status = hn_fail(error, HONE_ERROR_MEMORY, "cannot start a thread for served models");
    if (status == HONE_OK) {
      m->n_workers++;
    } else if (r) {
      close_runner(r);
      hn_free(r);
    }
  }
  return status;
}

void hn_served_close(hn_served *m) {
  pthread_mutex_lock(&m->lock);
  m->closing = true;
  pthread_cond_broadcast(&m->arrived);
  pthread_mutex_unlock(&m->lock);
  for (uint32_t i = 0; i < m->n_workers; i++) pthread_join(m->worker[i], NULL);
  m->n_workers = 0;
}

hone_status hn_served_run(hn_served *m, hn_ask *ask, hone_error *error) {
  hone_status status = HONE_OK;
  pthread_cond_init(&ask->done, NULL);
  pthread_mutex_lock(&m->lock);
  if (m->closing)
    status = hn_fail(error, HONE_ERROR_CANCELLED, "the server is being stopped");
  else if (m->waiting >= m->server->options.max_waiting)
    status = hn_fail(error, HONE_ERROR_BUDGET, "%u requests for '%.80s' wait already", m->waiting, m->name);
  if (status == HONE_OK) {
    ask->arrived = hn_now_ns();
    ask->next = NULL;
    *m->last = ask;
    m->last = &ask->next;
    m->waiting++;
    pthread_cond_broadcast(&m->arrived); /* one of several workers may be waiting for more of another shape */
    while (!ask->ready) pthread_cond_wait(&ask->done, &m->lock);
    status = ask->status;
    if (status != HONE_OK && error) *error = ask->error;
    if (status == HONE_OK) hn_served_count(m, ask->arrived, ask->begun, hn_now_ns());
  }
  pthread_mutex_unlock(&m->lock);
  pthread_cond_destroy(&ask->done);
  return status;
}
