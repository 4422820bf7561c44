#include "optimize/plan/packed.h"

#include "model/ir/bytes.h"
#include "optimize/step/shared.h"
#include "optimize/step/tuned.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct hn_packed_block {
  hn_packed_store *store;
  uint32_t refs;
  void *memory;
  size_t bytes;
  uint32_t n;
  hn_packed_piece *piece; /* [n], by key and bytes */
};

struct hn_packed_store {
  pthread_mutex_t lock;
  uint32_t refs; /* who made it, and its blocks */
  const hn_backend *backend;
  hn_device *device;
  HN_VEC(hn_packed_block *) blocks;
};

hn_packed_store *hn_packed_store_create(const hn_backend *backend, hn_device *device) {
  hn_packed_store *s = hn_calloc(1, sizeof *s);
  if (!s) return NULL;
  pthread_mutex_init(&s->lock, NULL);
  s->refs = 1;
  s->backend = backend;
  s->device = device;
  return s;
}

/* One holder less; called with the lock, which it gives back. */
static void drop_locked(hn_packed_store *s) {
  const bool last = --s->refs == 0;
  pthread_mutex_unlock(&s->lock);
  if (!last) return;
  hn_vec_free(&s->blocks);
  pthread_mutex_destroy(&s->lock);
  hn_free(s);
}

hn_packed_store *hn_packed_store_retain(hn_packed_store *s) {
  if (!s) return NULL;
  pthread_mutex_lock(&s->lock);
  s->refs++;
  pthread_mutex_unlock(&s->lock);
  return s;
}

void hn_packed_store_drop(hn_packed_store *s) {
  if (!s) return;
  pthread_mutex_lock(&s->lock);
  drop_locked(s);
}

uint64_t hn_packed_store_bytes(hn_packed_store *s, uint32_t *blocks) {
  uint64_t bytes = 0;
  pthread_mutex_lock(&s->lock);
  for (size_t i = 0; i < s->blocks.len; i++) bytes += s->blocks.ptr[i]->bytes;
  if (blocks) *blocks = (uint32_t)s->blocks.len;
  pthread_mutex_unlock(&s->lock);
  return bytes;
}

/* ------------------------------------------------------------------ keys */

/* Bytes that this plan made are named by what they are: the next plan has others there. Those of the model
 * that it was made of stay where they are. */
static void put_bytes(const hn_plan *p, const void *at, size_t bytes, hn_str *out) {
  if (!hn_model_owns(p->model, at) && !hn_arena_owns(&p->arena, at)) {
    hn_str_printf(out, " @%p", at);
    return;
  }
  hn_str_printf(out, " #%016llx%016llx", (unsigned long long)hn_hash(at, bytes, 1),
                (unsigned long long)hn_hash(at, bytes, 2));
}

/* Input i of a step, where it is a constant: which bytes, and from where on. Within one plan the slot says it
 * all, and nothing is read. */
static void put_constant(const hn_plan *p, uint32_t slot, bool by_slot, hn_str *out) {
  const uint64_t offset = hn_slot_offset(p, slot);
  slot = hn_slot_root(p, slot);
  const hn_slot *s = &p->slots.ptr[slot];
  const hn_deferred *d = s->deferred;
  if (s->place != HN_PLACE_CONST) return;
  hn_str_printf(out, " +%llu", (unsigned long long)offset);
  if (by_slot) {
    hn_str_printf(out, " =%u", (unsigned)slot);
    return;
  }
  if (!d) {
    put_bytes(p, s->constant, (size_t)s->bytes, out);
    return;
  }
  put_bytes(p, d->from, (size_t)hn_deferred_bytes(d), out);
  const hn_runs *r = &d->runs;
  hn_str_printf(out, " %d x%lld by %lld.%lld.%lld.%d", (int)d->type, (long long)d->count,
                (long long)r->length, (long long)r->period, (long long)r->rows, r->transposed);
  if (!d->factor || r->length < 1) return;
  int64_t most = 0; /* factors are as many as there are channels */
  for (int64_t run = 0; run < d->count / r->length; run++) {
    const int64_t channel = hn_run_channel(r, run);
    most = channel > most ? channel : most;
  }
  hn_str_printf(out, " *%016llx%016llx",
                (unsigned long long)hn_hash(d->factor, (size_t)(most + 1) * sizeof *d->factor, 1),
                (unsigned long long)hn_hash(d->factor, (size_t)(most + 1) * sizeof *d->factor, 2));
}

enum { MOST_INPUTS = 64 };

/* Does what is shared follow from constant input i? */
static bool counts(const hn_step *s, uint32_t i) {
  return !(s->shared_key & HN_SHARED_PACKED) || (i < 32 && s->need.packed >> i & 1);
}

/* The form of the step, with what constants that count are. */
static void put_form(const hn_step *s, hn_str *out) {
  hone_step step = s->desc;
  hone_step_tensor in[MOST_INPUTS];
  if (s->shared_key & HN_SHARED_PACKED && step.n_inputs <= MOST_INPUTS) {
    for (uint32_t i = 0; i < step.n_inputs; i++) {
      in[i] = step.input[i];
      if (!counts(s, i)) in[i].constant = NULL;
    }
    step.input = in;
  }
  hn_step_signature_of_weights(&step, out);
}

bool hn_packed_key_of(const hn_plan *p, const hn_step *s, bool by_slot, hn_packed_key *key) {
  hn_str text = {0};
  /* Tactics that pack alike have one function that says so, or one key. */
  hn_str_printf(&text, "%llx %zu %016llx ",
                s->sharing == HN_SHARES_WHOLE ? 0 : (unsigned long long)(uintptr_t)s->tactic->shared,
                s->need.blob_bytes - s->shared_at, (unsigned long long)s->shared_key);
  put_form(s, &text);
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) {
    hn_str_putc(&text, ';');
    if (s->in[i] != HN_NO_SLOT && counts(s, i)) put_constant(p, s->in[i], by_slot, &text);
  }
  if (!text.failed)
    for (uint64_t i = 0; i < 2; i++) key->part[i] = hn_hash(text.ptr, text.len, i);
  const bool good = !text.failed;
  hn_str_free(&text);
  return good;
}

/* ------------------------------------------------------------------ blocks */

static bool holds(const hn_packed_blocks *held, const hn_packed_block *b) {
  for (size_t i = 0; i < held->len; i++)
    if (held->ptr[i] == b) return true;
  return false;
}

static int by_key(const void *a, const void *b) {
  const hn_packed_piece *x = a, *y = b;
  const int keys = memcmp(&x->key, &y->key, sizeof x->key);
  return keys ? keys : x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* A plan asks for each of its steps, and plans of one store are few. */
static const hn_packed_piece *look(const hn_packed_store *s, const hn_packed_key *key, size_t bytes,
                                   hn_packed_block **block) {
  const hn_packed_piece want = {.key = *key, .bytes = bytes};
  const hn_packed_piece *found = NULL;
  for (size_t i = 0; i < s->blocks.len && !found; i++) {
    *block = s->blocks.ptr[i];
    if ((*block)->n) found = bsearch(&want, (*block)->piece, (*block)->n, sizeof want, by_key);
  }
  return found;
}

bool hn_packed_find(hn_packed_store *s, const hn_packed_key *key, size_t bytes, hn_packed_blocks *held,
                    hn_packed_piece *out) {
  hn_packed_block *b = NULL;
  pthread_mutex_lock(&s->lock);
  const hn_packed_piece *piece = look(s, key, bytes, &b);
  bool found = piece != NULL;
  if (found && !holds(held, b)) {
    found = hn_vec_push(held, b);
    b->refs += found;
  }
  if (found) *out = *piece;
  pthread_mutex_unlock(&s->lock);
  return found;
}

bool hn_packed_leave(hn_packed_store *s, void *memory, size_t bytes, const hn_packed_piece *piece, uint32_t n,
                     hn_packed_blocks *held) {
  hn_packed_block *b = hn_calloc(1, sizeof *b);
  hn_packed_piece *copy = hn_malloc(n * sizeof *copy + 1);
  if (!b || !copy || !hn_vec_push(held, b)) {
    s->backend->free(s->device, memory);
    hn_free(copy);
    hn_free(b);
    return false;
  }
  if (n) memcpy(copy, piece, n * sizeof *copy);
  if (n) qsort(copy, n, sizeof *copy, by_key);
  *b = (hn_packed_block){.store = s, .refs = 1, .memory = memory, .bytes = bytes, .n = n, .piece = copy};
  pthread_mutex_lock(&s->lock);
  if (!hn_vec_push(&s->blocks, b)) b->n = 0; /* nobody finds it: it is this plan's alone */
  s->refs++;
  pthread_mutex_unlock(&s->lock);
  return true;
}

static void let_go(hn_packed_block *b) {
  hn_packed_store *s = b->store;
  pthread_mutex_lock(&s->lock);
  if (--b->refs) {
    pthread_mutex_unlock(&s->lock);
    return;
  }
  for (size_t i = 0; i < s->blocks.len; i++)
    if (s->blocks.ptr[i] == b) {
      s->blocks.ptr[i] = s->blocks.ptr[--s->blocks.len];
      break;
    }
  s->backend->free(s->device, b->memory);
  hn_free(b->piece);
  hn_free(b);
  drop_locked(s);
}

void hn_packed_let_go(hn_packed_blocks *held) {
  for (size_t i = 0; i < held->len; i++) let_go(held->ptr[i]);
  hn_vec_free(held);
}
