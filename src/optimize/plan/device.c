/* What a plan needs on a device with memory of its own: weights and constants sent there, kernels made ready.
 * With a store, what plans of one model have in common is sent once.
 *
 * Everything crosses through two pinned buffers, each with its queue: one is filled while the other crosses.
 */
#include "optimize/plan/plan.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/quick_hash.h"
#include "optimize/plan/packed.h"

#include <stdatomic.h>
#include <string.h>

#define BUFFER ((uint64_t)8 << 20)
enum { BUFFERS = 2, ALIGN = 256 };

typedef struct crossing {
  const hn_plan *p;
  hn_queue *queue[BUFFERS];
  void *buffer[BUFFERS];
  uint32_t turn;
} crossing;

static void crossing_end(crossing *c) {
  const hn_backend *b = c->p->backend;
  for (int i = 0; i < BUFFERS; i++) {
    if (c->buffer[i]) b->free_host(c->p->device, c->buffer[i]);
    if (c->queue[i]) b->queue_close(c->p->device, c->queue[i]);
  }
}

static hone_status crossing_begin(crossing *c, const hn_plan *p, hone_error *error) {
  *c = (crossing){.p = p};
  for (int i = 0; i < BUFFERS; i++) {
    hone_status status = p->backend->queue_open(p->device, &c->queue[i], error);
    if (status != HONE_OK) return status;
    c->buffer[i] = hn_device_alloc(p->backend, p->device, &p->tenant, true, HONE_MEMORY_FOR_WEIGHTS, BUFFER);
    if (!c->buffer[i]) return hn_no_memory(p->backend, p->device, BUFFER, "sending weights (pinned)", error);
  }
  return HONE_OK;
}

static hone_status send(crossing *c, void *to, const void *from, uint64_t bytes, hone_error *error) {
  const hn_backend *b = c->p->backend;
  hone_status status = HONE_OK;
  for (uint64_t at = 0; at < bytes && status == HONE_OK; at += BUFFER, c->turn = (c->turn + 1) % BUFFERS) {
    const uint64_t n = bytes - at < BUFFER ? bytes - at : BUFFER;
    status = b->sync(c->p->device, c->queue[c->turn], error); /* the buffer is free again */
    if (status != HONE_OK) break;
    memcpy(c->buffer[c->turn], (const char *)from + at, n);
    status = b->copy(c->p->device, c->queue[c->turn], (char *)to + at, c->buffer[c->turn], n, error);
  }
  return status;
}

static hone_status crossed(crossing *c, hone_error *error) {
  hone_status status = HONE_OK;
  for (int i = 0; i < BUFFERS && status == HONE_OK; i++)
    status = c->p->backend->sync(c->p->device, c->queue[i], error);
  return status;
}

/* Does a step on the device read this slot while it runs? */
static bool reads(const hn_plan *p, const hn_step *s, uint32_t i) {
  if (s->kind == HN_STEP_LATE && s->node && i < 32 && s->node->op->host_inputs >> i & 1) return false;
  return (s->kind == HN_STEP_TACTIC || s->kind == HN_STEP_LATE) && s->in[i] != HN_NO_SLOT &&
         p->slots.ptr[hn_slot_root(p, s->in[i])].place == HN_PLACE_CONST &&
         !(i < 32 && s->need.packed >> i & 1);
}

/* ------------------------------------------------------------------ parcels */

/* Bytes that a step's blob, or a constant's slot, shows on the device. */
typedef struct parcel {
  bool constant, named;
  uint32_t number;   /* of the step, or of the slot, a root */
  hn_packed_key key; /* what the bytes are, or follow from */
  const void *from;
  uint64_t bytes;
  const void *there; /* where they are; NULL: still to be sent, */
  uint32_t like;     /* ...as this parcel's, a number and 1; 0: on their own, */
  uint64_t at;       /* ...to this place of the plan's block */
} parcel;

typedef struct parcels {
  HN_VEC(parcel) list;
  uint32_t news;  /* to be sent on their own */
  uint64_t bytes; /* of the block */
} parcels;

static bool list_step(hn_plan *p, uint32_t k, const hn_upload *what, parcels *x) {
  const hn_step *s = &p->steps.ptr[k];
  if (!s->tactic || !s->need.blob_bytes || s->found) return true;
  const uint64_t at = what->at ? what->at[k] : s->blob_offset;
  parcel a = {.number = k, .from = (const char *)what->blob + at, .bytes = s->need.blob_bytes};
  if (s->sharing == HN_SHARES_WHOLE && what->keyed && what->keyed[k]) a.named = true, a.key = what->key[k];
  return hn_vec_push(&x->list, a);
}

static bool list_parcels(hn_plan *p, const hn_upload *what, parcels *x) {
  bool *seen = hn_calloc(p->slots.len + 1, sizeof *seen), good = seen != NULL;
  for (uint32_t k = 0; good && k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    good = list_step(p, k, what, x);
    for (uint32_t i = 0; i < s->desc.n_inputs && good; i++) {
      if (!reads(p, s, i)) continue;
      const uint32_t root = hn_slot_root(p, s->in[i]);
      const hn_slot *c = &p->slots.ptr[root];
      if (!seen[root] && c->bytes)
        good = hn_vec_push(
            &x->list, (parcel){.from = c->constant, .bytes = c->bytes, .number = root, .constant = true});
      seen[root] = true;
    }
  }
  hn_free(seen);
  return good;
}

static void name_parcel(void *arg, int64_t task, uint32_t thread) {
  parcel *a = &((parcels *)arg)->list.ptr[task];
  (void)thread;
  if (a->named) return;
  a->key.part[0] = hn_checksum(a->from, (size_t)a->bytes);
  a->key.part[1] = hn_quick_hash(a->from, (size_t)a->bytes, 1);
  a->named = true;
}

static bool same_bytes(const parcel *a, const parcel *b) {
  return a->bytes == b->bytes && memcmp(&a->key, &b->key, sizeof a->key) == 0;
}

/* Bytes that a plan before brought to the device, or this one already, are not sent again: they are known by
 * what they are, or by what a step packs them of. */
static bool find_parcels(hn_plan *p, parcels *x, hn_packed_store *store) {
  size_t room = 64;
  while (room < 2 * x->list.len) room *= 2;
  uint32_t *seen = hn_calloc(room, sizeof *seen); /* by key: the first of its bytes, its number and 1 */
  if (!seen) return false;
  p->backend->parallel(p->device, (int64_t)x->list.len, name_parcel, x);
  for (uint32_t i = 0; i < x->list.len; i++) {
    parcel *a = &x->list.ptr[i];
    hn_packed_piece piece;
    if (hn_packed_find(store, &a->key, (size_t)a->bytes, &p->blocks, &piece)) {
      a->there = piece.at;
      p->found_bytes += a->bytes;
      continue;
    }
    size_t at = a->key.part[0] & (room - 1);
    while (seen[at] && !same_bytes(a, &x->list.ptr[seen[at] - 1])) at = (at + 1) & (room - 1);
    a->like = seen[at];
    if (!a->like) seen[at] = i + 1;
  }
  hn_free(seen);
  return true;
}

static void place_parcels(parcels *x) {
  for (size_t i = 0; i < x->list.len; i++) {
    parcel *a = &x->list.ptr[i];
    if (a->there || a->like) continue;
    a->at = x->bytes;
    x->bytes += hn_round_up(a->bytes, ALIGN);
    x->news++;
  }
}

static hone_status send_parcels(crossing *c, parcels *x, char *block, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t i = 0; i < x->list.len && status == HONE_OK; i++) {
    parcel *a = &x->list.ptr[i];
    if (a->like) a->there = x->list.ptr[a->like - 1].there;
    if (a->there) continue;
    a->there = block + a->at;
    status = send(c, block + a->at, a->from, a->bytes, error);
  }
  return status == HONE_OK ? crossed(c, error) : status; /* others may read it as soon as it is left */
}

static void show_parcels(hn_plan *p, const parcels *x) {
  for (size_t i = 0; i < x->list.len; i++) {
    const parcel *a = &x->list.ptr[i];
    if (a->constant)
      p->slots.ptr[a->number].resident = a->there;
    else
      p->steps.ptr[a->number].blob = a->there;
  }
  for (size_t i = 0; i < p->steps.len; i++) {
    hn_step *s = &p->steps.ptr[i];
    if (s->twin) s->blob = p->steps.ptr[s->twin - 1].blob;
  }
  for (uint32_t i = 0; i < p->slots.len; i++) {
    hn_slot *s = &p->slots.ptr[i];
    const hn_slot *root = &p->slots.ptr[hn_slot_root(p, i)];
    if (s->alias != HN_NO_SLOT && root->resident) s->resident = (const char *)root->resident + s->offset;
  }
}

/* The block is the store's from now on. */
static hone_status leave(hn_plan *p, const parcels *x, hn_packed_store *store, void *block,
                         hone_error *error) {
  uint32_t n = 0;
  hn_packed_piece *piece = hn_malloc((x->news + 1) * sizeof *piece);
  for (size_t i = 0; piece && i < x->list.len; i++) {
    const parcel *a = &x->list.ptr[i];
    const hn_step *s = a->constant ? NULL : &p->steps.ptr[a->number];
    if (a->named && !a->like && (const char *)a->there == (const char *)block + a->at)
      piece[n++] = (hn_packed_piece){.key = a->key,
                                     .at = a->there,
                                     .bytes = (size_t)a->bytes,
                                     .denormal_pct = s ? s->denormal_pct : -1,
                                     .sparse_pct = s ? s->sparse_pct : -1};
  }
  if (!piece) p->backend->free(p->device, block);
  const bool left = piece && hn_packed_leave(store, block, (size_t)x->bytes, piece, n, &p->blocks);
  hn_free(piece);
  return left ? HONE_OK : hn_fail_memory(error, sizeof *piece, "sending weights");
}

/* named: others may look in the store. */
static hone_status send_all(crossing *c, hn_plan *p, const hn_upload *what, hn_packed_store *store,
                            bool named, hone_error *error) {
  parcels x = {.bytes = 0};
  char *block = NULL;
  hone_status status = HONE_OK;
  if (!list_parcels(p, what, &x) || (named && !find_parcels(p, &x, store)))
    status = hn_fail_memory(error, p->steps.len * sizeof(parcel), "sending weights");
  place_parcels(&x);
  if (status == HONE_OK && x.bytes) {
    block = hn_device_alloc(p->backend, p->device, &p->tenant, false, HONE_MEMORY_FOR_WEIGHTS, x.bytes);
    if (!block) status = hn_plan_no_memory(p, x.bytes, "the model's weights", 1u << HN_PLACE_CONST, error);
  }
  if (status == HONE_OK) status = send_parcels(c, &x, block, error);
  if (block && status == HONE_OK)
    status = leave(p, &x, store, block, error);
  else if (block)
    p->backend->free(p->device, block);
  if (status == HONE_OK) show_parcels(p, &x);
  hn_vec_free(&x.list);
  return status;
}

hone_status hn_plan_upload(hn_plan *p, const hn_upload *what, hn_packed_store *given, hone_error *error) {
  crossing c;
  hone_status status = crossing_begin(&c, p, error);
  hn_packed_store *own = NULL, *store = given;
  if (status == HONE_OK && !store && !(store = own = hn_packed_store_create(p->backend, p->device)))
    status = hn_fail_memory(error, sizeof(hn_packed_key), "sending weights");
  if (status == HONE_OK) status = send_all(&c, p, what, store, given != NULL, error);
  crossing_end(&c);
  hn_packed_store_drop(own);
  for (size_t i = 0; i < p->steps.len && status != HONE_OK; i++) p->steps.ptr[i].blob = NULL;
  return status;
}

hone_status hn_plan_download(const hn_plan *p, void *blob, hone_error *error) {
  hn_queue *queue;
  hone_status status = p->backend->queue_open(p->device, &queue, error);
  if (status != HONE_OK) return status;
  memset(blob, 0, p->blob_bytes); /* what lies between them is no part of the file that is made of it */
  for (size_t i = 0; i < p->steps.len && status == HONE_OK; i++) {
    const hn_step *s = &p->steps.ptr[i];
    if (s->blob)
      status = p->backend->copy(p->device, queue, (char *)blob + s->blob_offset, s->blob, s->need.blob_bytes,
                                error);
  }
  if (status == HONE_OK) status = p->backend->sync(p->device, queue, error);
  p->backend->queue_close(p->device, queue);
  return status;
}

/* ------------------------------------------------------------------ preparation */

typedef struct preparing {
  hn_plan *p;
  _Atomic uint32_t next;
  atomic_bool failed;
  hone_status status;
  hone_error error;
} preparing;

hone_status hn_step_prepare(const hn_plan *p, const hn_step *s, const hone_tactic_desc *tactic,
                            hone_error *error) {
  enum { MOST = 64 };
  const void *in[MOST];
  void *out[MOST], *somewhere = (void *)(uintptr_t)(1u << 20);
  if (s->desc.n_inputs > MOST || s->desc.n_outputs > MOST)
    return hn_fail(error, HONE_ERROR_INTERNAL, "a step has too many inputs");
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) in[i] = s->in[i] == HN_NO_SLOT ? NULL : somewhere;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) out[i] = s->out[i] == HN_NO_SLOT ? NULL : somewhere;
  hone_step_run run = {.step = &s->desc, .in = in, .out = out, .blob = s->blob, .workspace = somewhere};
  hone_error why = {.status = HONE_OK};
  const hone_status status = p->backend->prepare(p->device, tactic, &run, &why);
  if (status == HONE_OK) return status;
  if (!why.where[0]) hn_error_where(&why, "node '%s' (%s, %s)", s->desc.name, s->desc.anchor, tactic->name);
  if (error) *error = why;
  return status;
}

static void prepare_some(void *arg, int64_t task, uint32_t thread) {
  preparing *j = arg;
  (void)task, (void)thread;
  for (uint32_t k; !atomic_load(&j->failed) && (k = atomic_fetch_add(&j->next, 1)) < j->p->steps.len;) {
    const hn_step *s = &j->p->steps.ptr[k];
    hone_error error = {.status = HONE_OK};
    if (s->kind != HN_STEP_TACTIC) continue;
    hone_status status = hn_step_prepare(j->p, s, s->tactic, &error);
    if (status == HONE_OK || atomic_exchange(&j->failed, true)) continue;
    j->status = status;
    j->error = error;
  }
}

hone_status hn_plan_prepare(hn_plan *p, hone_error *error) {
  preparing j = {.p = p};
  p->backend->parallel(p->device, 64, prepare_some, &j);
  if (!atomic_load(&j.failed)) return HONE_OK;
  if (error) *error = j.error;
  return j.status;
}
