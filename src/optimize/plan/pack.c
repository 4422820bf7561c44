/* Packs the constants of all steps into one blob, on all threads, and lets go of what was packed.
 *
 * Each step's weights are brought together (from the file, unaligned or scaled as a pass said), packed, and
 * given back before the next step's: beside the blob only a few tensors are in memory at a time. The largest
 * come first, so that these few shrink as the blob grows. What a step reads while it runs is kept, aligned.
 */
#include "optimize/plan/plan.h"

#include "base/error.h"
#include "model/ir/bytes.h"
#include "optimize/step/denormals.h"
#include "optimize/plan/packed.h"
#include "optimize/plan/saved.h"
#include "optimize/step/shared.h"
#include "optimize/step/sparsity.h"
#include "optimize/step/tactics.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Slots whose bytes are at one place. */
typedef struct constant {
  const void *at;
  uint64_t bytes;
  uint32_t slot; /* one of them: a root */
  bool kept;     /* a step reads it while it runs, or a caller gets it */
  bool aligned;  /* ...through its type */
  bool packed;
  _Atomic uint32_t packers; /* steps that have yet to pack it */
} constant;

typedef struct lane {
  void *scratch;
  size_t touched;
} lane;

typedef struct packing {
  hn_plan *p;
  bool own_model;
  bool alone; /* no other plan reads what this one packs */
  constant *constants;
  size_t n_constants;
  uint32_t *of_slot;              /* by slot: index into constants, or HN_NO_SLOT */
  void *blob;                     /* host memory that is packed into */
  bool cleared;                   /* it came zeroed */
  uint64_t blob_bytes;            /* of it: less than the plan's, where others have packed some */
  uint64_t *at;                   /* [steps] where a step's own bytes begin in it */
  HN_VEC(hn_packed_piece) pieces; /* of it: what others may read */
  uint32_t *seen;     /* steps whose weights may be those of later ones, by a hash: number and 1 */
  size_t seen_room;   /* a power of two */
  hn_packed_key *key; /* [steps] of those whose key was wanted */
  bool *keyed;
  uint32_t *job; /* steps in the order of work */
  size_t n_jobs;
  size_t scratch; /* bytes that a lane needs */
  size_t room;    /* that it has */
  size_t stays;   /* of them, that are never given back */
  lane *lanes;
  uint32_t n_lanes;
  _Atomic size_t next;
  _Atomic uint64_t read; /* bytes of small constants whose pages are still in memory */
  _Atomic uint64_t left; /* bytes of small constants that are in memory although nobody needs them any more */
  atomic_bool failed;
  hone_status status;
  hone_error error;
  atomic_bool beyond; /* scaled weights left the range of f32 */
} packing;

/* ------------------------------------------------------------------ who reads what */

static const hn_slot *root_of(const hn_plan *p, uint32_t slot) {
  return &p->slots.ptr[hn_slot_root(p, slot)];
}

static bool packs(const hn_step *s, uint32_t i) { return s->tactic && i < 32 && (s->need.packed >> i & 1); }

static bool any_alignment(const hn_step *s, uint32_t i) {
  return s->tactic && i < 32 && (s->need.bytewise >> i & 1);
}

typedef struct place {
  const void *at;
  uint32_t slot;
} place;

static int by_place(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->at != y->at) return (uintptr_t)x->at < (uintptr_t)y->at ? -1 : 1;
  return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* A nested graph reads the value by evaluation: then its own bytes must stay. */
static bool read_below(const hn_value *v) {
  for (size_t i = 0; v && i < v->users.len; i++)
    if (v->users.ptr[i].node->graph != v->graph) return true;
  return false;
}

/* Scales and zero points that descriptors speak of: a saved plan is lowered again, which reads them. */
static bool says_codes(const hn_plan *p, const hn_value *v) {
  return v && v->id < p->n_values && p->says_codes[v->id];
}

static hone_status find_constants(packing *k, hone_error *error) {
  hn_plan *p = k->p;
  size_t n = 0;
  place *list = hn_malloc(p->slots.len * sizeof *list);
  k->constants = hn_calloc(p->slots.len, sizeof *k->constants);
  k->of_slot = hn_malloc(p->slots.len * sizeof *k->of_slot);
  if (!list || !k->constants || !k->of_slot) {
    hn_free(list);
    return hn_fail_memory(error, p->slots.len * sizeof *k->constants, "packing");
  }
  for (uint32_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i];
    k->of_slot[i] = HN_NO_SLOT;
    if (s->place == HN_PLACE_CONST && s->alias == HN_NO_SLOT) list[n++] = (place){s->constant, i};
  }
  if (n) qsort(list, n, sizeof *list, by_place);
  for (size_t i = 0; i < n; i++) {
    const hn_slot *s = &p->slots.ptr[list[i].slot];
    if (!i || list[i].at != list[i - 1].at)
      k->constants[k->n_constants++] = (constant){.at = list[i].at, .slot = list[i].slot};
    constant *c = &k->constants[k->n_constants - 1];
    const uint64_t bytes = s->deferred ? hn_deferred_bytes(s->deferred) : s->bytes;
    if (bytes > c->bytes) c->bytes = bytes;
    if (read_below(s->value) || says_codes(p, s->value)) c->kept = true;
    k->of_slot[list[i].slot] = (uint32_t)(k->n_constants - 1);
  }
  hn_free(list);
  return HONE_OK;
}

static constant *constant_of(const packing *k, uint32_t slot) {
  if (slot == HN_NO_SLOT) return NULL;
  uint32_t c = k->of_slot[hn_slot_root(k->p, slot)];
  return c == HN_NO_SLOT ? NULL : &k->constants[c];
}

/* Lets go of a file's pages: at once where they are many, else together with others, because every time
 * interrupts the other processors. */
static void drop_pages(packing *k, const void *p, uint64_t bytes) {
  enum { MANY = 1 << 20, TOGETHER = 4 << 20 };
  if (bytes >= MANY)
    hn_model_drop_pages(k->p->model, p, bytes);
  else if (atomic_fetch_add(&k->read, bytes) + bytes >= TOGETHER) {
    atomic_store(&k->read, 0);
    hn_model_drop_all_pages(k->p->model);
  }
}

/* Gives a slot that is read at run time its bytes for good. */
static hone_status keep(packing *k, uint32_t root, hone_error *error) {
  hn_plan *p = k->p;
  hn_slot *s = &p->slots.ptr[root];
  void *data = hn_arena_raw(&p->arena, s->bytes, HN_MEM_ALIGN);
  if (!data) return hn_fail_memory(error, s->bytes, "a constant");
  if (!s->deferred)
    memcpy(data, s->constant, s->bytes);
  else if (!hn_deferred_make(s->deferred, data)) {
    k->beyond = true;
    return hn_fail(error, HONE_ERROR_INTERNAL, "scaled weights leave the range of f32");
  }
  drop_pages(k, s->constant, s->deferred ? hn_deferred_bytes(s->deferred) : s->bytes);
  s->constant = data;
  s->deferred = NULL;
  p->constant_bytes += s->bytes;
  return HONE_OK;
}

static hone_status keep_for_runs(packing *k, hone_error *error) {
  hn_plan *p = k->p;
  for (size_t j = 0; j < p->steps.len; j++) {
    const hn_step *s = &p->steps.ptr[j];
    for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++) {
      constant *c = constant_of(k, s->in[i]);
      if (!c) continue;
      if (i < s->desc.n_inputs && packs(s, i))
        atomic_fetch_add_explicit(&c->packers, 1, memory_order_relaxed), c->packed = true;
      else {
        c->kept = true;
        c->aligned |= !any_alignment(s, i);
      }
    }
  }
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    constant *c = constant_of(k, p->output_slot[i]);
    if (c) c->kept = c->aligned = true;
  }
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < p->slots.len && status == HONE_OK; i++) {
    hn_slot *s = &p->slots.ptr[i];
    constant *c = s->alias == HN_NO_SLOT && s->place == HN_PLACE_CONST ? constant_of(k, i) : NULL;
    if (!c || !c->kept || !s->bytes) continue;
    hone_tensor t = {s->desc, (void *)(uintptr_t)s->constant};
    if (s->deferred || (c->aligned && !hn_is_aligned(&t))) status = keep(k, i, error);
  }
  for (uint32_t i = 0; i < p->slots.len; i++) {
    hn_slot *s = &p->slots.ptr[i];
    if (s->place != HN_PLACE_CONST) continue;
    s->constant = root_of(p, i)->constant;
    if (s->alias != HN_NO_SLOT && s->offset) s->constant = (const char *)s->constant + s->offset;
  }
  for (size_t j = 0; j < p->steps.len; j++) {
    hn_step *s = &p->steps.ptr[j];
    hone_step_tensor *in = (hone_step_tensor *)(uintptr_t)s->desc.input; /* the plan's own array */
    for (uint32_t i = 0; i < s->desc.n_inputs; i++)
      if (s->in[i] != HN_NO_SLOT && in[i].constant) in[i].constant = p->slots.ptr[s->in[i]].constant;
  }
  return status;
}

/* ------------------------------------------------------------------ packing */

/* Weights of 16 bits that are f32 to the plan, as the file has them: what shares its whole blob reads any
 * type. NULL: they are not so. */
static const hn_deferred *as_stored(const hn_plan *p, const hn_step *s, uint32_t i) {
  const hn_deferred *d = s->sharing == HN_SHARES_WHOLE ? root_of(p, s->in[i])->deferred : NULL;
  if (!d || d->factor || hone_dtype_size(d->type) != 2 || hn_slot_offset(p, s->in[i])) return NULL;
  return any_alignment(s, i) || (uintptr_t)d->from % 2 == 0 ? d : NULL;
}

/* Bytes of scratch that input i of a step needs to be read by prepack. */
static size_t gathered(const hn_plan *p, const hn_step *s, uint32_t i) {
  if (s->in[i] == HN_NO_SLOT || !packs(s, i) || s->found) return 0;
  const hn_slot *r = root_of(p, s->in[i]);
  hone_tensor t = {r->desc, (void *)(uintptr_t)r->constant};
  if (as_stored(p, s, i)) return 0;
  return r->place == HN_PLACE_CONST && (r->deferred || (!any_alignment(s, i) && !hn_is_aligned(&t)))
             ? hn_round_up(r->bytes, HN_MEM_ALIGN)
             : 0;
}

static size_t all_gathered(const hn_plan *p, const hn_step *s) {
  size_t n = 0;
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) n += gathered(p, s, i);
  return n;
}

/* No constant says any more that its bytes are there. False: a nested graph reads one of them. */
static bool forget_filled(hn_model *m, const void *at) {
  const hn_graph *g = m->graph; /* such constants are in no other */
  for (int forget = 0; forget < 2; forget++)
    for (size_t i = 0; i < g->values.len; i++) {
      const hn_value *v = g->values.ptr[i];
      if (!v->constant || v->constant->data != at) continue;
      if (read_below(v)) return false;
      if (forget) ((hone_tensor *)(uintptr_t)v->constant)->data = NULL; /* this model's own */
    }
  return true;
}

/* The last of its packers lets go of a constant. */
static void let_go(packing *k, constant *c) {
  hn_plan *p = k->p;
  if (c->kept || c->bytes <= HN_SMALL_CONSTANT) return;
  bool mine = k->own_model && hn_model_owns(p->model, c->at);
  if (!mine && !hn_arena_owns(&p->arena, c->at)) {
    drop_pages(k, c->at, c->bytes);
    return;
  }
  const bool many = mine && hn_model_is_filled(p->model, c->at);
  if (many && !forget_filled(p->model, c->at)) return;
  /* Each release is a call of the system, and interrupts the other processors: a little may stay. */
  enum { LITTLE = 1 << 20 };
  if (atomic_fetch_add(&k->left, c->bytes) + c->bytes > LITTLE)
    hn_release_pages((void *)(uintptr_t)c->at, c->bytes);
  const hn_value *v = p->slots.ptr[c->slot].value;
  if (mine && !many && v && v->constant && v->constant->data == c->at)
    ((hone_tensor *)(uintptr_t)v->constant)->data = NULL; /* this model's own */
}

/* Bytes of the step's blob that this plan packs. */
static size_t own_bytes(const hn_step *s) { return s->found ? s->shared_at : s->need.blob_bytes; }

/* What a blob takes among others. Accelerators read weights by lines of 128 bytes: a step whose blob began in
 * the middle of one would read more of them. */
static uint64_t blob_room(const hn_plan *p, size_t bytes) {
  enum { LINES = 256 };
  return hn_round_up(bytes, p->backend->asynchronous ? LINES : HN_MEM_ALIGN);
}

enum { MOST_INPUTS = 64, MOST_PARTS = 4 };

/* A chain's parts with the constants that the whole has now: theirs are those that the model came with. */
typedef struct parts {
  hone_step_part part[MOST_PARTS];
  hone_step step[MOST_PARTS];
  hone_step_tensor in[MOST_PARTS][MOST_INPUTS];
} parts;

static bool follow_parts(hone_step *whole, parts *own) {
  if (whole->n_parts > MOST_PARTS) return false;
  for (uint32_t k = 0; k < whole->n_parts; k++) {
    const hone_step_part *p = &whole->part[k];
    hone_step *s = &own->step[k];
    *s = *p->step;
    if (s->n_inputs > MOST_INPUTS) return false;
    memcpy(own->in[k], s->input, s->n_inputs * sizeof *s->input);
    for (uint32_t i = 0; i < s->n_inputs; i++)
      if (p->input[i] != HONE_PART_CHAINED) own->in[k][i].constant = whole->input[p->input[i]].constant;
    s->input = own->in[k];
    own->part[k] = (hone_step_part){s, p->input};
  }
  whole->part = own->part;
  return true;
}

static hone_status pack_step(packing *k, hn_step *s, lane *l, hone_error *error) {
  hn_plan *p = k->p;
  hone_step step = s->desc;
  hone_step_tensor in[MOST_INPUTS];
  parts own;
  size_t need = all_gathered(p, s), at = 0;
  need = hn_round_up(need, 2u << 20); /* huge pages: those of one that was cut come back small */
  if (need < k->stays) need = k->stays;
  if (need * 2 < l->touched) {
    hn_release_pages((char *)l->scratch + need, l->touched - need);
    l->touched = need;
  }
  if (need > k->room) need = k->room;
  if (need > l->touched) l->touched = need;
  if (step.n_inputs > MOST_INPUTS) return hn_fail(error, HONE_ERROR_INTERNAL, "a step has too many inputs");
  memcpy(in, step.input, step.n_inputs * sizeof *in);
  step.input = in;
  for (uint32_t i = 0; i < step.n_inputs; i++) {
    const size_t bytes = gathered(p, s, i);
    const hn_deferred *stored =
        s->in[i] == HN_NO_SLOT || !packs(s, i) || s->found ? NULL : as_stored(p, s, i);
    if (stored) in[i].constant = stored->from, in[i].desc.dtype = stored->type;
    if (!bytes) continue;
    const hn_slot *r = root_of(p, s->in[i]);
    void *data = (char *)l->scratch + at;
    if (!r->deferred)
      memcpy(data, r->constant, r->bytes);
    else if (!hn_deferred_make(r->deferred, data)) {
      k->beyond = true;
      return hn_fail(error, HONE_ERROR_INTERNAL, "scaled weights leave the range of f32");
    }
    drop_pages(k, r->constant, r->deferred ? hn_deferred_bytes(r->deferred) : r->bytes);
    in[i].constant = (char *)data + hn_slot_offset(p, s->in[i]);
    at += bytes;
  }
  if (!follow_parts(&step, &own))
    return hn_fail(error, HONE_ERROR_INTERNAL, "a chain has too many parts or inputs");
  step.own_only = s->found;
  hone_status status = HONE_OK;
  if (own_bytes(s))
    status = hn_tactic_pack(s->tactic, &step, &p->machine, (void *)(uintptr_t)s->blob,
                            k->cleared ? 0 : (size_t)blob_room(p, own_bytes(s)), error);
  for (uint32_t i = 0; status == HONE_OK && i < s->desc.n_inputs; i++) {
    constant *c = packs(s, i) ? constant_of(k, s->in[i]) : NULL;
    if (c && atomic_fetch_sub_explicit(&c->packers, 1, memory_order_acq_rel) == 1) let_go(k, c);
  }
  return status;
}

static void work(void *arg, int64_t task, uint32_t thread) {
  packing *k = arg;
  (void)thread;
  for (size_t j; !atomic_load(&k->failed) && (j = atomic_fetch_add(&k->next, 1)) < k->n_jobs;) {
    hn_step *s = &k->p->steps.ptr[k->job[j]];
    hone_error error = {.status = HONE_OK};
    hone_status status = pack_step(k, s, &k->lanes[task], &error);
    if (status == HONE_OK || atomic_exchange(&k->failed, true)) continue;
    hn_error_where(&error, "node '%s' (%s)", s->desc.name, s->desc.anchor);
    k->status = status;
    k->error = error;
  }
}

typedef struct sized {
  uint64_t bytes;
  uint32_t step;
} sized;

static int larger_first(const void *a, const void *b) {
  const sized *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->step < y->step ? -1 : x->step > y->step;
}

static hone_status order_jobs(packing *k, hone_error *error) {
  hn_plan *p = k->p;
  sized *list = hn_malloc(p->steps.len * sizeof *list);
  k->job = hn_malloc(p->steps.len * sizeof *k->job);
  if (!list || !k->job) {
    hn_free(list);
    return hn_fail_memory(error, p->steps.len * sizeof *list, "packing");
  }
  for (uint32_t i = 0; i < p->steps.len; i++) {
    hn_step *s = &p->steps.ptr[i];
    if (!s->tactic || !s->need.blob_bytes) continue;
    if (s->sharing != HN_SHARES_WHOLE || !s->found) s->blob = (char *)k->blob + k->at[i];
    if (s->sharing == HN_SHARES_PART && !s->found) s->shared = (const char *)s->blob + s->shared_at;
    if (s->twin) s->shared = p->steps.ptr[s->twin - 1].shared;
    list[k->n_jobs++] = (sized){own_bytes(s), i};
  }
  if (k->n_jobs) qsort(list, k->n_jobs, sizeof *list, larger_first);
  for (size_t i = 0; i < k->n_jobs; i++) k->job[i] = list[i].step;
  hn_free(list);
  return HONE_OK;
}

/* Host memory as the device's host steps like it best. */
static void *host_alloc(const hn_plan *p, size_t bytes) {
  if (p->backend->asynchronous) return hn_aligned(4096, bytes);
  return hn_device_alloc(p->backend, p->device, &p->tenant, true, HONE_MEMORY_FOR_WEIGHTS, bytes);
}

static void host_free(const hn_plan *p, void *at) {
  if (p->backend->asynchronous)
    hn_free(at);
  else
    p->backend->free(p->device, at);
}

/* As many lanes as there are threads, unless what they hold at a time would weigh beside the blob. */
static void size_lanes(packing *k) {
  hn_plan *p = k->p;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    const size_t need = s->tactic && s->need.blob_bytes ? all_gathered(p, s) : 0;
    if (need > k->scratch) k->scratch = need;
  }
  const uint64_t room = p->blob_bytes / 4 + (16u << 20);
  k->n_lanes = p->machine.threads ? p->machine.threads : 1;
  while (k->n_lanes > 1 && k->scratch && k->n_lanes > room / k->scratch) k->n_lanes--;
  /* Beyond a certain size, the backend gives huge pages: fewer faults. */
  k->room = k->scratch > 512 << 10 && k->scratch < 4 << 20 ? 4 << 20 : k->scratch;
  if (k->room > 4 << 20) k->room = hn_round_up(k->room, 2 << 20);
  /* The pool keeps the block, and as a rule gives it to who runs the plan: a little stays as it is. */
  k->stays = k->n_lanes > 1 ? 0 : k->room < 4 << 20 ? k->room : 4 << 20;
}

/* Tells the pool what packing will take and, once its scratch is back, the first run. */
static void expect(const packing *k) {
  const hn_plan *p = k->p;
  if (p->backend->asynchronous) return;
  const uint64_t work = p->workspace_bytes * p->lanes, run = p->arena_bytes + work,
                 scratch = k->room * k->n_lanes,
                 both[] = {k->blob_bytes, scratch > run ? scratch : p->arena_bytes, scratch > run ? 0 : work};
  hn_device_expect(p->backend, p->device, &p->tenant, both, sizeof both / sizeof *both);
}

static hone_status run_jobs(packing *k, hone_error *error) {
  hn_plan *p = k->p;
  hone_status status = HONE_OK;
  k->lanes = hn_calloc(k->n_lanes, sizeof *k->lanes);
  if (!k->lanes) return hn_fail_memory(error, k->n_lanes * sizeof *k->lanes, "packing");
  for (uint32_t i = 0; i < k->n_lanes && k->scratch; i++)
    if (!(k->lanes[i].scratch = host_alloc(p, k->room)))
      status = hn_fail_memory(error, k->scratch, "packing");
  if (status == HONE_OK) p->backend->parallel(p->device, k->n_lanes, work, k);
  for (uint32_t i = 0; i < k->n_lanes && k->scratch; i++) {
    if (!k->lanes[i].scratch) continue;
    hn_release_pages((char *)k->lanes[i].scratch + k->stays, k->room - k->stays);
    host_free(p, k->lanes[i].scratch);
  }
  if (status == HONE_OK && atomic_load(&k->failed)) {
    status = k->status;
    if (error) *error = k->error;
  }
  return status;
}

/* Marks the slots whose bytes are in the blob alone. */
static hone_status note_packed(packing *k, hone_error *error) {
  hn_plan *p = k->p;
  for (uint32_t i = 0; i < p->slots.len; i++) {
    hn_slot *s = &p->slots.ptr[i];
    const constant *c = s->alias == HN_NO_SLOT && s->place == HN_PLACE_CONST ? constant_of(k, i) : NULL;
    s->packed = c && c->packed && !c->kept && c->bytes > HN_SMALL_CONSTANT;
    if (p->saved && s->constant == p->saved->absent && s->place == HN_PLACE_CONST && !s->packed && s->bytes)
      return hn_saved_misfit(p->saved, error, "it wants to read a constant that is packed");
  }
  return HONE_OK;
}

/* What the numbers of a product's weights are like; those that are still to be widened as they lie there. A
 * saved plan has no weights but packed ones. */
static void count_weights(const hn_plan *p, hn_step *s) {
  hone_step step = s->desc;
  hone_step_tensor in[2];
  s->denormal_pct = s->sparse_pct = -1;
  if (p->saved || step.n_inputs < 2) return;
  const hn_slot *w = s->in[1] == HN_NO_SLOT ? NULL : &p->slots.ptr[s->in[1]];
  if (w && w->deferred) {
    memcpy(in, step.input, sizeof in);
    in[1].desc.dtype = w->deferred->type;
    step.input = in;
  }
  if (!s->flush && !p->backend->asynchronous) /* devices do not mind denormals */
    s->denormal_pct = hn_denormal_weights(&step);
  s->sparse_pct = hn_sparse_groups(&step);
}

/* Which constants the step packs, and how, at a glance: steps of one number may share, others do not. */
static uint64_t glance(const hn_step *s) {
  const uint64_t of[] = {(uint64_t)(uintptr_t)s->tactic, s->need.blob_bytes - s->shared_at, s->shared_key};
  uint64_t hash = hn_hash(of, sizeof of, 0);
  for (uint32_t i = 0; i < s->desc.n_inputs; i++)
    if (s->in[i] != HN_NO_SLOT && packs(s, i)) hash = hn_hash(&s->in[i], sizeof s->in[i], hash + i);
  return hash;
}

/* The step's key, made when it is wanted for the first time: it may have to read the weights. */
static bool key_of(packing *k, uint32_t number, hn_packed_key *out) {
  const size_t n = k->p->steps.len;
  if (!k->key && !(k->key = hn_calloc(n, sizeof *k->key))) return false;
  if (!k->keyed && !(k->keyed = hn_calloc(n, sizeof *k->keyed))) return false;
  if (!k->keyed[number] && !hn_packed_key_of(k->p, &k->p->steps.ptr[number], k->alone, &k->key[number]))
    return false;
  k->keyed[number] = true;
  *out = k->key[number];
  return true;
}

/* A recurrence that was unrolled multiplies by one matrix in each of its steps: packed once it stays in a
 * cache that its copies would not fit in. False: out of memory. */
static bool find_twin(packing *k, uint32_t number) {
  hn_plan *p = k->p;
  hn_step *s = &p->steps.ptr[number];
  hn_packed_key key, other;
  if (!k->seen) {
    for (k->seen_room = 64; k->seen_room < 2 * p->steps.len; k->seen_room *= 2) continue;
    if (!(k->seen = hn_calloc(k->seen_room, sizeof *k->seen))) return false;
  }
  const uint64_t hash = glance(s);
  size_t at = hash & (k->seen_room - 1);
  for (; k->seen[at]; at = (at + 1) & (k->seen_room - 1)) {
    const hn_step *t = &p->steps.ptr[k->seen[at] - 1];
    if (glance(t) != hash) continue;
    if (!key_of(k, number, &key) || !key_of(k, k->seen[at] - 1, &other)) return false;
    if (memcmp(&key, &other, sizeof key) != 0) continue;
    s->found = true;
    s->twin = k->seen[at];
    s->denormal_pct = t->denormal_pct, s->sparse_pct = t->sparse_pct;
    p->found_bytes += s->need.blob_bytes - s->shared_at;
    p->twin_bytes += s->need.blob_bytes - s->shared_at;
    return true;
  }
  k->seen[at] = number + 1;
  return true;
}

/* What the step shares: found where another plan left it or another step will have it, or noted as what this
 * one will leave. False: out of memory. */
static bool look_for(packing *k, hn_packed_store *store, uint32_t number) {
  hn_step *s = &k->p->steps.ptr[number];
  const size_t bytes = s->need.blob_bytes - s->shared_at;
  hn_packed_piece piece = {.bytes = bytes};
  if (!store) return find_twin(k, number);
  if (!key_of(k, number, &piece.key)) return false;
  s->found = hn_packed_find(store, &piece.key, bytes, &k->p->blocks, &piece);
  if (!s->found) return find_twin(k, number) && (s->found || hn_vec_push(&k->pieces, piece));
  *(s->sharing == HN_SHARES_WHOLE ? &s->blob : &s->shared) = piece.at;
  s->denormal_pct = piece.denormal_pct, s->sparse_pct = piece.sparse_pct;
  k->p->found_bytes += bytes;
  return true;
}

/* Devices send blobs as a whole. */
static bool shares(const packing *k, hn_step *s) {
  const hn_plan *p = k->p;
  if (p->saved || !s->need.blob_bytes || !s->tactic) return false;
  s->sharing = hn_tactic_shares(s->tactic, &s->desc, &p->machine, &s->shared_at, &s->shared_key);
  if (s->sharing == (p->backend->asynchronous ? HN_SHARES_WHOLE : HN_SHARES_PART) &&
      s->shared_at < s->need.blob_bytes)
    return true;
  s->sharing = HN_SHARES_NOTHING, s->shared_at = 0;
  return false;
}

hone_status hn_plan_needs(hn_plan *p, hone_error *error) {
  hone_status status = HONE_OK;
  for (size_t i = 0; i < p->steps.len && status == HONE_OK; i++) {
    hn_step *s = &p->steps.ptr[i];
    if (s->tactic && s->tactic->need) status = s->tactic->need(&s->desc, &p->machine, &s->need, error);
  }
  return status;
}

/* Where what steps need goes. */
static hone_status lay_out(packing *k, const hn_plan_request *r, hone_error *error) {
  hn_plan *p = k->p;
  k->at = hn_malloc((p->steps.len + 1) * sizeof *k->at);
  if (!k->at) return hn_fail_memory(error, p->steps.len * sizeof *k->at, "packing");
  for (size_t i = 0; i < p->steps.len; i++) {
    hn_step *s = &p->steps.ptr[i];
    s->flush = s->kind == HN_STEP_TACTIC && hn_step_flushes(&s->desc);
    const bool shared = shares(k, s);
    if (shared && !look_for(k, r->store, (uint32_t)i))
      return hn_fail_memory(error, sizeof(hn_packed_piece), "packing");
    if (!s->found) count_weights(p, s);
    s->blob_offset = p->blob_bytes;
    p->blob_bytes += blob_room(p, s->need.blob_bytes);
    k->at[i] = k->blob_bytes;
    k->blob_bytes += blob_room(p, own_bytes(s));
  }
  return HONE_OK;
}

/* The block is the store's, and other plans may read in it. */
static hone_status leave(packing *k, hn_packed_store *store, hone_error *error) {
  hn_plan *p = k->p;
  uint32_t n = 0;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    if (s->sharing != HN_SHARES_PART || s->found) continue;
    hn_packed_piece *piece = &k->pieces.ptr[n++];
    piece->at = s->shared;
    piece->denormal_pct = s->denormal_pct, piece->sparse_pct = s->sparse_pct;
  }
  void *blob = k->blob;
  k->blob = NULL;
  return hn_packed_leave(store, blob, (size_t)k->blob_bytes, k->pieces.ptr, n, &p->blocks)
             ? HONE_OK
             : hn_fail_memory(error, sizeof(hn_packed_piece), "packing");
}

hone_status hn_plan_prepack(hn_plan *p, const hn_plan_request *r, hone_error *error) {
  packing k = {.p = p, .own_model = r->own_model, .alone = !r->store};
  hone_status status = lay_out(&k, r, error);
  if (status == HONE_OK) status = find_constants(&k, error);
  if (status == HONE_OK) status = keep_for_runs(&k, error);
  if (status == HONE_OK && p->saved) {
    status = hn_saved_attach(p, error);
  } else if (status == HONE_OK && k.blob_bytes) {
    size_lanes(&k);
    expect(&k);
    k.blob = host_alloc(p, k.blob_bytes);
    k.cleared =
        k.blob && !p->backend->asynchronous && hn_mempool_cleared(p->backend->pool(p->device, true), k.blob);
    status = k.blob ? order_jobs(&k, error) : hn_fail_memory(error, k.blob_bytes, "packed weights");
    if (status == HONE_OK) status = run_jobs(&k, error);
    if (status == HONE_OK && r->store && !p->backend->asynchronous) status = leave(&k, r->store, error);
  }
  if (p->backend->asynchronous) {
    const hn_upload what = {.blob = p->saved ? p->saved->file.data + p->saved->head.blob_at : k.blob,
                            .at = p->saved ? NULL : k.at,
                            .key = k.key,
                            .keyed = k.keyed};
    if (status == HONE_OK) status = hn_plan_upload(p, &what, r->store, error);
    host_free(p, k.blob);
  } else
    p->blob = k.blob;
  if (status == HONE_OK) status = note_packed(&k, error);
  hn_model_drop_all_pages(p->model);
  if (r->beyond) *r->beyond = k.beyond;
  hn_vec_free(&k.pieces);
  hn_free(k.seen);
  hn_free(k.key);
  hn_free(k.keyed);
  hn_free(k.at);
  hn_free(k.constants);
  hn_free(k.of_slot);
  hn_free(k.job);
  hn_free(k.lanes);
  return status;
}
