#include "api/shapes/keep.h"

#include "api/api.h"
#include "api/lines.h"
#include "base/error.h"
#include "base/os.h"
#include "optimize/plan/packed.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { MOST_WAITING = 64, MOST_GONE = 64, ALL_NEW = 3 };

typedef HN_VEC(hn_sizes) size_list;

struct hn_keep {
  hn_keep_options o;
  hn_packed_store *store; /* NULL: on devices with memory of their own */
  hn_lines *lines;        /* likewise */
  hn_proofs *proofs;
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t changed, work;
  HN_VEC(hn_kept *) plans;
  size_list waiting, refused; /* to be made in the background; what could not be made there */
  size_list gone;             /* sizes whose plans became others, the latest of them */
  uint32_t missed;            /* runs, one after the other, whose plans had to be made */
  uint64_t clock;
  hone_shapes_counts counts;
  bool ending, held, making, started;
  pthread_t thread;
};

static bool same(const hn_sizes *a, const hn_sizes *b) { return memcmp(a, b, sizeof *a) == 0; }

static bool in_list(const size_list *l, const hn_sizes *size) {
  for (size_t i = 0; i < l->len; i++)
    if (same(&l->ptr[i], size)) return true;
  return false;
}

/* ------------------------------------------------------------------ leases */

static void free_lease(hone_shapes_answer *l) {
  const uint32_t n_in = hone_plan_inputs(l->kept->plan), n_out = hone_plan_outputs(l->kept->plan);
  for (uint32_t i = 0; l->longer && i < n_in; i++) hn_free(l->longer[i].data);
  for (uint32_t i = 0; l->cut && i < n_out; i++) hn_free(l->cut[i]);
  hone_context_destroy(l->context);
  hn_free((void *)l->in);
  hn_free(l->longer);
  hn_free(l->longer_room);
  hn_free(l->result);
  hn_free((void *)l->cut);
  hn_free(l->cut_room);
  hn_free(l->map);
  hn_free(l);
}

static hone_status make_lease(hn_keep *k, hn_kept *kept, hone_shapes_answer **out, hone_error *error) {
  const uint32_t n_in = hone_plan_inputs(kept->plan), n_out = hone_plan_outputs(kept->plan);
  const size_t cells = (size_t)k->o.n_profiles * hn_proofs_values(k->proofs);
  hone_shapes_answer *l = hn_calloc(1, sizeof *l);
  if (!l) return hn_fail_memory(error, sizeof *l, "a context");
  l->keep = k, l->kept = kept;
  l->in = hn_calloc(n_in + 1, sizeof *l->in);
  l->longer = hn_calloc(n_in + 1, sizeof *l->longer);
  l->longer_room = hn_calloc(n_in + 1, sizeof *l->longer_room);
  l->result = hn_calloc(n_out + 1, sizeof *l->result);
  l->cut = hn_calloc(n_out + 1, sizeof *l->cut);
  l->cut_room = hn_calloc(n_out + 1, sizeof *l->cut_room);
  l->map = hn_calloc(cells + 1, sizeof *l->map);
  hone_status status = HONE_OK;
  if (!l->in || !l->longer || !l->longer_room || !l->result || !l->cut || !l->cut_room || !l->map)
    status = hn_fail_memory(error, cells * sizeof *l->map, "a context");
  if (status == HONE_OK) status = hone_context_create(kept->plan, &l->context, error);
  if (status == HONE_OK)
    *out = l;
  else
    free_lease(l);
  return status;
}

/* ------------------------------------------------------------------ bytes */

static uint64_t context_bytes(const hn_kept *kept) {
  uint64_t arena = 0, workspace = 0;
  hone_plan_memory(kept->plan, &arena, NULL, &workspace);
  uint64_t bytes = 0;
  for (size_t i = 0; i < kept->leases.len; i++) {
    const hone_shapes_answer *l = kept->leases.ptr[i];
    bytes += arena + workspace + l->extra;
  }
  return bytes;
}

static uint64_t bytes_of(const hn_keep *k) {
  uint64_t bytes = k->store ? hn_packed_store_bytes(k->store, NULL) : 0;
  for (size_t i = 0; i < k->plans.len; i++) {
    const hn_kept *kept = k->plans.ptr[i];
    if (!kept->plan) continue;
    const hn_plan *p = hn_api_plan(kept->plan);
    bytes += p->constant_bytes + (k->store ? 0 : p->blob_bytes) + context_bytes(kept);
  }
  return bytes;
}

/* ------------------------------------------------------------------ which stay */

static void free_kept(hn_kept *kept) {
  for (size_t i = 0; i < kept->leases.len; i++) free_lease(kept->leases.ptr[i]);
  hn_vec_free(&kept->leases);
  hone_plan_destroy(kept->plan);
  hn_free(kept);
}

static void remove_at(hn_keep *k, size_t at) {
  for (size_t i = at + 1; i < k->plans.len; i++) k->plans.ptr[i - 1] = k->plans.ptr[i];
  k->plans.len--;
}

/* The one that nobody has and that was not used for longest, where there are too many: out of the list. The
 * one that was used last stays. With the lock. */
static hn_kept *victim(hn_keep *k) {
  const bool many = k->plans.len > k->o.capacity;
  if (k->plans.len < 2 || (!many && !(k->o.max_bytes && bytes_of(k) > k->o.max_bytes))) return NULL;
  size_t at = SIZE_MAX;
  uint64_t last = 0;
  for (size_t i = 0; i < k->plans.len; i++)
    last = k->plans.ptr[i]->stamp > last ? k->plans.ptr[i]->stamp : last;
  for (size_t i = 0; i < k->plans.len; i++) {
    const hn_kept *e = k->plans.ptr[i];
    if (e->in_use || !e->plan || e->stamp == last) continue;
    if (at == SIZE_MAX || e->stamp < k->plans.ptr[at]->stamp) at = i;
  }
  if (at == SIZE_MAX) return NULL;
  hn_kept *gone = k->plans.ptr[at];
  remove_at(k, at);
  k->counts.evicted++;
  return gone;
}

/* With the lock, which is given back while plans are destroyed. */
static void trim(hn_keep *k) {
  for (hn_kept *gone; (gone = victim(k));) {
    pthread_mutex_unlock(&k->lock);
    free_kept(gone);
    pthread_mutex_lock(&k->lock);
  }
}

static hn_kept *find(const hn_keep *k, const hn_sizes *size) {
  for (size_t i = 0; i < k->plans.len; i++)
    if (same(&k->plans.ptr[i]->size, size)) return k->plans.ptr[i];
  return NULL;
}

/* A plan that has room for it, with the least work. */
static hn_kept *larger(const hn_keep *k, const hn_sizes *wanted) {
  hn_kept *best = NULL;
  double least = 0;
  for (size_t i = 0; i < k->plans.len; i++) {
    hn_kept *e = k->plans.ptr[i];
    double work = 1;
    bool fits = e->plan != NULL;
    for (uint32_t j = 0; j < k->o.n_profiles; j++) {
      fits = fits && (k->o.pads[j] ? e->size.of[j] >= wanted->of[j] : e->size.of[j] == wanted->of[j]);
      work *= (double)e->size.of[j];
    }
    if (fits && (!best || work < least)) best = e, least = work;
  }
  return best;
}

/* ------------------------------------------------------------------ making */

static double cpu_seconds(void) {
  struct timespec t;
  return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? (double)t.tv_sec + (double)t.tv_nsec * 1e-9 : 0;
}

/* A plan that nobody has and that was not used for longest, of those behind `after`: out of the list. */
static hn_kept *take_out(hn_keep *k, uint64_t after) {
  size_t at = SIZE_MAX;
  for (size_t i = 0; i < k->plans.len; i++) {
    const hn_kept *e = k->plans.ptr[i];
    if (!e->in_use && e->plan && e->stamp > after && (at == SIZE_MAX || e->stamp < k->plans.ptr[at]->stamp))
      at = i;
  }
  hn_kept *out = at == SIZE_MAX ? NULL : k->plans.ptr[at];
  if (out) remove_at(k, at);
  return out;
}

static void note_gone(hn_keep *k, const hn_sizes *size) {
  if (k->gone.len == MOST_GONE) {
    for (size_t i = 1; i < k->gone.len; i++) k->gone.ptr[i - 1] = k->gone.ptr[i];
    k->gone.len--;
  }
  (void)hn_vec_push(&k->gone, *size);
}

/* Makes of a plan that is there the one for e's sizes, where that can be. As long as there is room for more,
 * only while all sizes are new, and these have not been here; where sizes are those of buckets, there are
 * few, and none but the plan that would go is asked. With the lock, which is given back meanwhile. */
static hone_plan *move_one(hn_keep *k, const hn_kept *e) {
  hone_plan *plan = NULL;
  uint32_t n = 0;
  bool few = false;
  for (uint32_t i = 0; i < k->o.n_profiles; i++) few |= k->o.pads[i];
  const bool full = k->plans.len > k->o.capacity,
             new = !few && k->missed >= ALL_NEW && !in_list(&k->gone, &e->size);
  if (!k->lines || (!full && !new)) return NULL;
  hone_binding *b = hn_shapes_bindings(k->o.plan, k->o.symbol, k->o.n_profiles, &e->size, &n);
  uint64_t after = 0;
  for (hn_kept *from; b && !plan && (from = take_out(k, after));) {
    bool done = false;
    after = from->stamp;
    pthread_mutex_unlock(&k->lock);
    for (size_t i = 0; i < from->leases.len; i++) free_lease(from->leases.ptr[i]);
    from->leases.len = 0;
    const hone_status status = hone_plan_rebind(from->plan, b, n, &done, NULL);
    pthread_mutex_lock(&k->lock);
    if (done) {
      plan = from->plan;
      from->plan = NULL;
      note_gone(k, &from->size);
    } else if (status == HONE_OK && hn_vec_push(&k->plans, from)) {
      if (few) break;
      continue;
    }
    free_kept(from);
  }
  hn_free(b);
  k->counts.moved += plan != NULL;
  k->counts.evicted += plan != NULL;
  return plan;
}

static hone_status build(hn_keep *k, hn_kept *e, hone_plan **out, hone_error *error) {
  hone_plan_options o = *k->o.plan;
  uint32_t n = 0;
  hone_binding *b = hn_shapes_bindings(k->o.plan, k->o.symbol, k->o.n_profiles, &e->size, &n);
  if (!b) return hn_fail_memory(error, sizeof *b, "binding shapes");
  o.bindings = b, o.n_bindings = n;
  const hone_status status =
      hn_api_plan_of_lines(k->o.engine, k->o.model, &o, k->lines, k->store, out, error);
  hn_free(b);
  return status;
}

/* Makes the plan for sizes that nobody has; with the lock, which is given back meanwhile. *out is in use. */
static hone_status make(hn_keep *k, const hn_sizes *size, hn_kept **out, hone_error *error) {
  hn_kept *e = hn_calloc(1, sizeof *e);
  if (!e || !hn_vec_push(&k->plans, e)) {
    hn_free(e);
    return hn_fail_memory(error, sizeof *e, "a plan");
  }
  hone_plan *plan = NULL;
  e->size = *size;
  e->in_use = 1;
  e->stamp = ++k->clock;
  const uint64_t start = hn_now_ns();
  const double cpu = cpu_seconds();
  hone_status status = HONE_OK;
  if (!(plan = move_one(k, e))) {
    pthread_mutex_unlock(&k->lock);
    status = build(k, e, &plan, error);
    pthread_mutex_lock(&k->lock);
  }
  e->plan_s = (double)(hn_now_ns() - start) * 1e-9;
  e->plan_cpu_s = cpu_seconds() - cpu;
  e->plan = plan;
  pthread_cond_broadcast(&k->changed);
  if (status == HONE_OK) {
    *out = e;
    return HONE_OK;
  }
  for (size_t i = 0; i < k->plans.len; i++)
    if (k->plans.ptr[i] == e) {
      remove_at(k, i);
      break;
    }
  hn_free(e);
  return status;
}

static void *background(void *arg) {
  hn_keep *k = arg;
  pthread_mutex_lock(&k->lock);
  while (!k->ending) {
    if (k->held || !k->waiting.len) {
      pthread_cond_wait(&k->work, &k->lock);
      continue;
    }
    const hn_sizes size = k->waiting.ptr[0];
    for (size_t i = 1; i < k->waiting.len; i++) k->waiting.ptr[i - 1] = k->waiting.ptr[i];
    k->waiting.len--;
    hn_kept *e = NULL;
    if (!find(k, &size)) {
      k->making = true;
      if (make(k, &size, &e, NULL) == HONE_OK) {
        e->in_use--;
        trim(k);
      } else {
        k->counts.failed++;
        if (k->refused.len < MOST_WAITING) (void)hn_vec_push(&k->refused, size);
      }
      k->making = false;
    }
    pthread_cond_broadcast(&k->changed);
  }
  pthread_mutex_unlock(&k->lock);
  return NULL;
}

/* With the lock. What is not taken now is asked for again by the next run. */
static void ask_for(hn_keep *k, const hn_sizes *size) {
  if (in_list(&k->waiting, size) || in_list(&k->refused, size) || k->waiting.len >= MOST_WAITING) return;
  if (hn_vec_push(&k->waiting, *size)) pthread_cond_signal(&k->work);
}

/* ------------------------------------------------------------------ public to shapes.c */

hone_status hn_keep_create(const hn_keep_options *o, hn_keep **out, hone_error *error) {
  hn_keep *k = hn_calloc(1, sizeof *k);
  if (!k) return hn_fail_memory(error, sizeof *k, "plans for shapes");
  hn_device *device = NULL;
  const hn_backend *backend = hn_api_backend(o->engine, &device);
  k->o = *o;
  pthread_mutex_init(&k->lock, NULL);
  pthread_cond_init(&k->changed, NULL);
  pthread_cond_init(&k->work, NULL);
  hone_status status = hn_proofs_create(o->model, o->plan, o->symbol, o->n_profiles, &k->proofs, error);
  if (status == HONE_OK && !backend->asynchronous && !(k->store = hn_packed_store_create(backend, device)))
    status = hn_fail_memory(error, sizeof(void *), "plans for shapes");
  if (status == HONE_OK && k->store && !(k->lines = hn_lines_create()))
    status = hn_fail_memory(error, sizeof(void *), "plans for shapes");
  if (status == HONE_OK && o->background) {
    k->started = pthread_create(&k->thread, NULL, background, k) == 0;
    if (!k->started)
      status = hn_fail(error, HONE_ERROR_MEMORY, "a thread for plans in the background could not be started");
  }
  if (status == HONE_OK)
    *out = k;
  else
    hn_keep_destroy(k);
  return status;
}

void hn_keep_destroy(hn_keep *k) {
  if (!k) return;
  pthread_mutex_lock(&k->lock);
  k->ending = true;
  pthread_cond_broadcast(&k->work);
  pthread_mutex_unlock(&k->lock);
  if (k->started) pthread_join(k->thread, NULL);
  for (size_t i = 0; i < k->plans.len; i++) free_kept(k->plans.ptr[i]);
  hn_vec_free(&k->plans);
  hn_vec_free(&k->waiting);
  hn_vec_free(&k->refused);
  hn_vec_free(&k->gone);
  hn_lines_drop(k->lines);
  hn_packed_store_drop(k->store);
  hn_proofs_destroy(k->proofs);
  pthread_cond_destroy(&k->changed);
  pthread_cond_destroy(&k->work);
  pthread_mutex_destroy(&k->lock);
  hn_free(k);
}

hn_proofs *hn_keep_proofs(hn_keep *k) { return k->proofs; }

static void use(hn_keep *k, hn_kept *e) {
  e->in_use++;
  e->stamp = ++k->clock;
}

/* Whether a larger plan may serve; with the lock, which is given back meanwhile. *out is in use then. */
static hone_status serve(hn_keep *k, const hn_sizes *wanted, hn_kept **out, hone_error *error) {
  hn_kept *e = larger(k, wanted);
  bool proved = false;
  hone_reason why;
  *out = NULL;
  if (!e) return HONE_OK;
  use(k, e);
  pthread_mutex_unlock(&k->lock);
  const hone_status status = hn_proofs_get(k->proofs, wanted, &e->size, NULL, &proved, &why, error);
  pthread_mutex_lock(&k->lock);
  if (status == HONE_OK && proved)
    *out = e;
  else
    e->in_use--;
  return status;
}

hone_status hn_keep_take(hn_keep *k, const hn_sizes *wanted, const hn_sizes *target, hn_kept **out,
                         hone_error *error) {
  hone_status status = HONE_OK;
  bool alone = !wanted || !k->o.background; /* no larger one may serve */
  *out = NULL;
  pthread_mutex_lock(&k->lock);
  while (status == HONE_OK && !*out) {
    hn_kept *e = find(k, target);
    if (e && e->plan) {
      use(k, e);
      k->counts.exact++;
      k->missed = 0;
      *out = e;
    } else if (!alone) {
      alone = true;
      status = serve(k, wanted, out, error);
      if (*out) k->counts.padded++;
      if (*out && !find(k, target)) ask_for(k, target);
    } else if (e) {
      pthread_cond_wait(&k->changed, &k->lock);
    } else {
      k->missed += wanted != NULL; /* of runs; not where plans are made beforehand */
      status = make(k, target, out, error);
      k->counts.made += status == HONE_OK;
      if (status == HONE_OK) trim(k);
    }
  }
  pthread_mutex_unlock(&k->lock);
  return status;
}

void hn_keep_back(hn_keep *k, hn_kept *e) {
  pthread_mutex_lock(&k->lock);
  e->in_use--;
  trim(k);
  pthread_mutex_unlock(&k->lock);
}

hone_status hn_keep_lease(hn_keep *k, hn_kept *e, hone_shapes_answer **out, hone_error *error) {
  *out = NULL;
  pthread_mutex_lock(&k->lock);
  for (size_t i = 0; i < e->leases.len && !*out; i++)
    if (!e->leases.ptr[i]->out) *out = e->leases.ptr[i];
  if (*out) (*out)->out = true;
  pthread_mutex_unlock(&k->lock);
  hone_status status = HONE_OK;
  if (!*out) {
    hone_shapes_answer *made = NULL;
    status = make_lease(k, e, &made, error);
    if (status == HONE_OK) {
      made->out = true;
      pthread_mutex_lock(&k->lock);
      const bool pushed = hn_vec_push(&e->leases, made);
      pthread_mutex_unlock(&k->lock);
      if (!pushed) {
        free_lease(made);
        status = hn_fail_memory(error, sizeof made, "a context");
      } else
        *out = made;
    }
  }
  if (status != HONE_OK) hn_keep_back(k, e);
  return status;
}

void hn_keep_return(hone_shapes_answer *l) {
  hn_keep *k = l->keep;
  size_t extra = 0;
  for (uint32_t j = 0; j < hone_plan_inputs(l->kept->plan); j++) extra += l->longer_room[j];
  for (uint32_t j = 0; j < hone_plan_outputs(l->kept->plan); j++) extra += l->cut_room[j];
  pthread_mutex_lock(&k->lock);
  l->out = false;
  l->extra = extra;
  l->kept->runs += l->ran;
  l->kept->padded_runs += l->ran && l->padded;
  l->ran = l->padded = false;
  l->kept->in_use--;
  trim(k);
  pthread_mutex_unlock(&k->lock);
}

hone_shapes_answer *hn_keep_find(hn_keep *k, const hone_context *context) {
  hone_shapes_answer *found = NULL;
  pthread_mutex_lock(&k->lock);
  for (size_t i = 0; i < k->plans.len; i++)
    for (size_t j = 0; j < k->plans.ptr[i]->leases.len; j++) {
      hone_shapes_answer *l = k->plans.ptr[i]->leases.ptr[j];
      if (l->out && l->context == context) found = l;
    }
  pthread_mutex_unlock(&k->lock);
  return found;
}

void hn_keep_wait(hn_keep *k) {
  pthread_mutex_lock(&k->lock);
  while (k->making || (k->waiting.len && !k->held)) pthread_cond_wait(&k->changed, &k->lock);
  pthread_mutex_unlock(&k->lock);
}

void hn_keep_hold(hn_keep *k, bool hold) {
  pthread_mutex_lock(&k->lock);
  k->held = hold;
  pthread_cond_broadcast(&k->work);
  pthread_cond_broadcast(&k->changed);
  pthread_mutex_unlock(&k->lock);
}

void hn_keep_count(hn_keep *k, hone_shapes_counts *out) {
  pthread_mutex_lock(&k->lock);
  *out = k->counts;
  out->plans = 0;
  for (size_t i = 0; i < k->plans.len; i++) out->plans += k->plans.ptr[i]->plan != NULL;
  out->waiting = (uint32_t)k->waiting.len + k->making;
  out->bytes = bytes_of(k);
  pthread_mutex_unlock(&k->lock);
}

static void describe(const hn_keep *k, const hn_kept *e, hone_shape_plan *out) {
  const hn_plan *p = hn_api_plan(e->plan);
  *out = (hone_shape_plan){.plan_s = e->plan_s,
                           .plan_cpu_s = e->plan_cpu_s,
                           .own_bytes = p->blob_bytes + p->constant_bytes - p->found_bytes,
                           .shared_bytes = p->found_bytes,
                           .arena_bytes = p->arena_bytes,
                           .runs = e->runs,
                           .padded_runs = e->padded_runs,
                           .in_use = e->in_use};
  memcpy(out->size, e->size.of, k->o.n_profiles * sizeof *out->size);
  for (size_t i = 0; i < p->steps.len; i++)
    if (p->steps.ptr[i].predicted_s < 1e6) out->predicted_s += p->steps.ptr[i].predicted_s * p->slices;
}

bool hn_keep_plan(hn_keep *k, uint32_t i, hone_shape_plan *out) {
  const hn_kept *e = NULL;
  uint64_t after = 0;
  pthread_mutex_lock(&k->lock);
  for (uint32_t n = 0; n <= i; n++) { /* the next by its last use */
    e = NULL;
    for (size_t j = 0; j < k->plans.len; j++) {
      const hn_kept *c = k->plans.ptr[j];
      if (c->plan && c->stamp > after && (!e || c->stamp < e->stamp)) e = c;
    }
    if (!e) break;
    after = e->stamp;
  }
  if (e) describe(k, e, out);
  pthread_mutex_unlock(&k->lock);
  return e != NULL;
}
