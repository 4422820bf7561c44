#include "runtime/context.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/strided.h"
#include "model/ir/items.h"
#include "optimize/plan/plan.h"
#include "runtime/late.h"
#include "runtime/pools.h"
#include "runtime/record.h"
#include "runtime/reference.h"
#include "runtime/remote.h"
#include "runtime/room.h"
#include "runtime/slices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Consecutive steps that the device does without the host: captured once, launched as a whole. */
typedef struct piece {
  uint32_t first, count;
  bool apart;          /* one step that is not captured: the host's, or one that only the run can describe */
  hn_segment *segment; /* NULL: launched step by step */
} piece;

struct hn_context {
  const hn_plan *plan;
  bool apart; /* the device has memory of its own: */
  hn_remote remote;
  hn_references ref;
  hn_late late;
  piece *pieces;
  uint32_t n_pieces;
  hone_tensor *returned; /* by output: what was copied from the device */
  hn_slices slices;      /* of plans that run a slice of the batch after the other */
  hn_lent lent;
  void *arena, *workspace; /* workspace: one a lane */
  bool borrowed;           /* these two are in somebody else's block */
  hone_tensor *tensor;     /* by slot; data of arena slots is fixed */
  const void **in;         /* scratch for the widest step */
  void **out;
  const hone_tensor *const *given; /* inputs of the run in progress */
  hn_arena own;                    /* copies of sequences and optionals that were given; until the next run */
  const hone_tensor **adopted;     /* inputs, these among them; NULL: all are plain tensors */
  uint64_t most_bytes, most_bytes_at; /* what the system was found to have, and when */
  uint64_t heap_peak;
  uint64_t touched;
  _Atomic bool cancel;
  hn_recorder recorder;
  hn_step_watch watch;
  void *watch_arg;
  bool watch_writes;
  hn_step_edge edge;
  void *edge_arg;
};

/* ------------------------------------------------------------------ life */

static hone_status cut(hn_context *c, hone_error *error);
static hone_status capture(hn_context *c, hone_error *error);

uint64_t hn_context_needs(const hn_plan *p) {
  if (!p->workspace_bytes) return p->arena_bytes;
  return hn_round_up(p->arena_bytes, HN_BLOCK_ALIGN) + hn_room_of_lane(p) * p->lanes;
}

/* Activations and workspace at their places in the block. */
static void settle_in(hn_context *c, void *block) {
  const hn_plan *p = c->plan;
  c->borrowed = true;
  c->arena = p->arena_bytes ? block : NULL;
  c->workspace = p->workspace_bytes ? (char *)block + hn_round_up(p->arena_bytes, HN_BLOCK_ALIGN) : NULL;
}

/* Every slot that lies in the arenas, at its place there. */
static void lay_out(hn_context *c) {
  const hn_plan *p = c->plan;
  for (uint32_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i], *root = &p->slots.ptr[hn_slot_root(p, i)];
    if (root->place == HN_PLACE_ARENA)
      c->tensor[i].data = (char *)(c->apart && !root->desc.device ? c->remote.host : c->arena) +
                          root->offset + (s == root ? 0 : s->offset);
  }
}

hone_status hn_context_move(hn_context *c, void *block, hone_error *error) {
  settle_in(c, block);
  lay_out(c);
  hn_lent_forget(c->plan, &c->lent);
  return c->apart ? capture(c, error) : HONE_OK;
}

hone_status hn_context_create(const hn_plan *p, hn_context **out, hone_error *error) {
  return hn_context_create_in(p, NULL, out, error);
}

hone_status hn_context_create_in(const hn_plan *p, void *block, hn_context **out, hone_error *error) {
  *out = NULL;
  hone_status status = HONE_OK;
  hn_context *c = hn_calloc(1, sizeof *c);
  if (!c) return hn_fail_memory(error, sizeof *c, "a context");
  c->plan = c->ref.plan = p;
  c->ref.apart = p->backend->asynchronous;
  uint32_t widest = 1;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    if (s->desc.n_inputs + s->n_captured > widest) widest = s->desc.n_inputs + s->n_captured;
    if (s->desc.n_outputs > widest) widest = s->desc.n_outputs;
  }
  c->in = hn_calloc(widest, sizeof *c->in);
  c->out = hn_calloc(widest, sizeof *c->out);
  c->ref.tin = hn_calloc(widest, sizeof *c->ref.tin);
  c->ref.tout = hn_calloc(widest, sizeof *c->ref.tout);
  c->tensor = hn_calloc(p->slots.len, sizeof *c->tensor);
  c->returned = hn_calloc(p->n_outputs + 1, sizeof *c->returned);
  bool plain = true;
  for (uint32_t i = 0; i < p->n_inputs; i++) plain &= hone_dtype_is_tensor(p->inputs[i]->desc.dtype);
  if (!plain && !(c->adopted = hn_calloc(p->n_inputs, sizeof *c->adopted))) {
    status = hn_fail_memory(error, p->n_inputs * sizeof *c->adopted, "a context");
    goto done;
  }
  c->apart = p->backend->asynchronous;
  c->ref.tensor = c->tensor;
  if ((status = hn_slices_open(p, &c->slices, error)) != HONE_OK) goto done;
  if (c->apart && (status = hn_remote_open(p, &c->remote, error)) != HONE_OK) goto done;
  if (c->apart && (status = hn_late_open(p, &c->remote, &c->late, error)) != HONE_OK) goto done;
  if (block) settle_in(c, block);
  if (!block && p->arena_bytes) c->arena = hn_pools_take(p, HONE_MEMORY_FOR_ACTIVATIONS, p->arena_bytes);
  if (!block && p->workspace_bytes)
    c->workspace = hn_pools_take(p, HONE_MEMORY_FOR_WORKSPACE, hn_room_of_lane(p) * p->lanes);
  if (!c->in || !c->out || !c->ref.tin || !c->ref.tout || !c->tensor || !c->returned ||
      (p->arena_bytes && !c->arena) || (p->workspace_bytes && !c->workspace)) {
    status = hn_room_missing(p, p->workspace_bytes && !c->workspace && (c->arena || !p->arena_bytes), error);
    goto done;
  }
  for (uint32_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i], *root = &p->slots.ptr[hn_slot_root(p, i)];
    c->tensor[i].desc = s->desc;
    if (root->place == HN_PLACE_STAGED)
      c->tensor[i].data = (char *)c->remote.staged + root->offset + (s == root ? 0 : s->offset);
    else if (root->place == HN_PLACE_CONST)
      c->tensor[i].data = (void *)s->constant;
  }
  lay_out(c);
  if (c->apart) status = cut(c, error);
done:
  if (status == HONE_OK)
    *out = c;
  else
    hn_context_destroy(c);
  return status;
}

hone_status hn_context_set_threads(hn_context *c, uint32_t threads, hone_error *error) {
  const hn_backend *b = c->plan->backend;
  hn_queue *queue = NULL;
  if (c->apart)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "device %s has no threads to share out", b->name);
  hone_status status = threads ? b->share_open(c->plan->device, threads, &queue, error) : HONE_OK;
  if (status != HONE_OK) return status;
  if (c->remote.queue) b->queue_close(c->plan->device, c->remote.queue);
  c->remote.queue = queue;
  return HONE_OK;
}

static void drop_heap(hn_context *c, uint32_t slot) {
  hone_tensor *t = &c->tensor[slot];
  if (!t->data) return;
  if (c->plan->slots.ptr[slot].desc.device) {
    hn_late_give(&c->late, t->data);
    t->data = NULL;
    return;
  }
  int64_t bytes = hone_desc_bytes(&t->desc);
  if (bytes > 0 && (uint64_t)bytes <= c->ref.budget.bytes) c->ref.budget.bytes -= (uint64_t)bytes;
  hn_heap_free(&c->ref, t->data);
  t->data = NULL;
}

static void drop_all_heap(hn_context *c) {
  for (uint32_t i = 0; i < c->plan->slots.len; i++)
    if (c->plan->slots.ptr[i].place == HN_PLACE_HEAP && c->plan->slots.ptr[i].alias == HN_NO_SLOT)
      drop_heap(c, i);
}

void hn_context_destroy(hn_context *c) {
  if (!c) return;
  if (c->tensor) drop_all_heap(c);
  hn_recorder_free(&c->recorder);
  for (uint32_t i = 0; i < c->n_pieces; i++)
    if (c->pieces[i].segment) c->plan->backend->segment_free(c->plan->device, c->pieces[i].segment);
  hn_free(c->pieces);
  hn_late_close(&c->late);
  if (c->apart)
    hn_remote_close(c->plan, &c->remote);
  else if (c->remote.queue)
    c->plan->backend->queue_close(c->plan->device, c->remote.queue);
  if (c->arena && !c->borrowed) c->plan->backend->free(c->plan->device, c->arena);
  if (c->workspace && !c->borrowed) c->plan->backend->free(c->plan->device, c->workspace);
  hn_arena_free(&c->ref.keep);
  hn_arena_free(&c->own);
  hn_free((void *)c->adopted);
  hn_arena_free(&c->ref.overflow);
  hn_lent_free(c->plan, &c->lent);
  hn_slices_close(c->plan, &c->slices);
  hn_heap_free(&c->ref, c->ref.scratch);
  hn_free((void *)c->in);
  hn_free(c->out);
  hn_free((void *)c->ref.tin);
  hn_free(c->ref.tout);
  hn_free(c->tensor);
  hn_free(c->returned);
  hn_free(c);
}

/* ------------------------------------------------------------------ running */

static void *data_of(const hn_context *c, uint32_t slot) {
  uint32_t root = hn_slot_root(c->plan, slot);
  const hn_slot *r = &c->plan->slots.ptr[root];
  const uint64_t offset = slot == root ? 0 : c->plan->slots.ptr[slot].offset;
  if (r->place == HN_PLACE_INPUT) return (char *)c->given[r->input]->data + offset;
  if (r->place == HN_PLACE_HEAP) return offset ? (char *)c->tensor[root].data + offset : c->tensor[root].data;
  return c->tensor[slot].data;
}

static void resolve(hn_context *c, const hn_step *s) {
  const hn_plan *p = c->plan;
  for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++) {
    uint32_t slot = s->in[i];
    c->ref.tin[i] = NULL;
    c->in[i] = NULL;
    if (slot == HN_NO_SLOT) continue;
    hn_place place = p->slots.ptr[hn_slot_root(p, slot)].place;
    if (place == HN_PLACE_INPUT || place == HN_PLACE_HEAP) c->tensor[slot].data = data_of(c, slot);
    c->ref.tin[i] = &c->tensor[slot];
    const bool resident = c->apart && place == HN_PLACE_CONST && p->slots.ptr[slot].resident &&
                          (s->kind == HN_STEP_TACTIC || s->kind == HN_STEP_LATE ||
                           (s->kind == HN_STEP_COPY && p->slots.ptr[slot].desc.device));
    c->in[i] = resident ? p->slots.ptr[slot].resident : c->tensor[slot].data;
  }
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    c->ref.tout[i] = s->out[i] == HN_NO_SLOT ? NULL : &c->tensor[s->out[i]];
    c->out[i] = c->ref.tout[i] ? c->ref.tout[i]->data : NULL;
  }
}

/* Frees what nobody reads after step k, and keeps count of the arena's high-water mark. */
static void after_step(hn_context *c, const hn_step *s, uint32_t k) {
  const hn_plan *p = c->plan;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    if (s->out[i] == HN_NO_SLOT) continue;
    const hn_slot *r = &p->slots.ptr[hn_slot_root(p, s->out[i])];
    if (r->place == HN_PLACE_ARENA && r->offset + r->bytes > c->touched) c->touched = r->offset + r->bytes;
  }
  if (c->ref.budget.bytes > c->heap_peak) c->heap_peak = c->ref.budget.bytes;
  if (!p->has_heap) return;
  for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured + s->desc.n_outputs; i++) {
    uint32_t slot =
        i < s->desc.n_inputs + s->n_captured ? s->in[i] : s->out[i - s->desc.n_inputs - s->n_captured];
    if (slot == HN_NO_SLOT) continue;
    uint32_t root = hn_slot_root(p, slot);
    if (p->slots.ptr[root].place == HN_PLACE_HEAP && p->slots.ptr[root].last == k) drop_heap(c, root);
  }
}

/* A copy whose size only the run knows. Memory of the host may be given away behind it: it is waited for. */
static hone_status copy_apart(hn_context *c, const hn_step *s, hone_error *error) {
  const hn_plan *p = c->plan;
  const hn_slot *to = &p->slots.ptr[s->out[0]];
  hone_tensor *y = c->ref.tout[0];
  hone_tensor_desc d = c->ref.tin[0]->desc;
  const int64_t bytes = hone_desc_bytes(&d);
  const size_t size = bytes > 0 ? (size_t)bytes : 0;
  if (to->place == HN_PLACE_HEAP) {
    d.device = to->desc.device;
    y->desc = d;
    y->data = d.device ? hn_late_take(&c->late, size) : hn_aligned(HN_MEM_ALIGN, size);
    if (!y->data)
      return d.device ? hn_no_memory(p->backend, p->device, size, s->desc.name, error)
                      : hn_fail_memory(error, size, s->desc.name);
    if (!d.device) c->ref.budget.bytes += size;
  }
  if (!size) return HONE_OK;
  hone_status status = p->backend->copy(p->device, c->remote.queue, y->data, c->in[0], size, error);
  return status == HONE_OK ? p->backend->sync(p->device, c->remote.queue, error) : status;
}

/* Does a step, or gives it to the device. */
static hone_status issue(hn_context *c, const hn_step *s, hone_error *error) {
  const hn_plan *p = c->plan;
  hone_status status;
  resolve(c, s);
  if (s->kind == HN_STEP_TACTIC) {
    hone_step_run run = {.step = &s->desc,
                         .in = c->in,
                         .out = c->out,
                         .blob = s->blob,
                         .shared = s->shared,
                         .workspace =
                             c->workspace ? (char *)c->workspace + s->lane * hn_room_of_lane(p) : NULL,
                         .threads = s->threads,
                         .flush = s->flush};
    status = p->backend->launch(p->device, c->remote.queue, s->tactic, &run, error);
  } else if (s->kind == HN_STEP_LATE) {
    status = hn_late_run(&c->late, (uint32_t)(s - p->steps.ptr), c->in, c->ref.tin, c->ref.tout, &c->ref.keep,
                         &c->ref.budget, error);
  } else if (s->kind == HN_STEP_COPY && hn_step_apart(p, s)) {
    status = copy_apart(c, s, error);
  } else if (s->kind == HN_STEP_COPY) {
    const int64_t bytes = hone_desc_bytes(&s->desc.input[0].desc);
    status = p->backend->copy(p->device, c->remote.queue, c->out[0], c->in[0], bytes > 0 ? (size_t)bytes : 0,
                              error);
  } else
    status = hn_run_reference(&c->ref, s, error);
  if (status != HONE_OK && error && !error->where[0])
    hn_error_where(error, "node '%s' (%s)", s->desc.name, s->desc.anchor);
  return status;
}

/* Shows a step's outputs to the watcher; those of an accelerator as the host sees them. */
static hone_status show(hn_context *c, const hn_step *s, hone_error *error) {
  hone_tensor seen[16] = {0}, *list[16] = {0};
  hone_status status = HONE_OK;
  if (!c->watch) return HONE_OK;
  if (!c->apart || s->desc.n_outputs > 16) {
    c->watch(c->watch_arg, s, c->ref.tout);
    return HONE_OK;
  }
  for (uint32_t i = 0; i < s->desc.n_outputs && status == HONE_OK; i++) {
    if (!c->ref.tout[i]) continue;
    list[i] = c->ref.tout[i];
    if (!c->ref.tout[i]->desc.device) continue;
    const hn_value *v = c->plan->slots.ptr[s->out[i]].value;
    status = hn_remote_fetch(c->plan, &c->remote, c->ref.tout[i], v ? v->desc.dtype : HONE_DTYPE_F32,
                             &seen[i], error);
    list[i] = &seen[i];
  }
  if (status == HONE_OK) c->watch(c->watch_arg, s, list);
  for (uint32_t i = 0; i < s->desc.n_outputs && status == HONE_OK && c->watch_writes; i++)
    if (seen[i].data) status = hn_remote_put(c->plan, &c->remote, &seen[i], c->ref.tout[i], error);
  for (uint32_t i = 0; i < s->desc.n_outputs && i < 16; i++) hn_free(seen[i].data);
  return status;
}

static hone_status run_one(hn_context *c, uint32_t k, hone_error *error) {
  const hn_step *s = &c->plan->steps.ptr[k];
  hone_status status = hn_budget_check(&c->ref.budget, error);
  if (status != HONE_OK) return status;
  c->recorder.step = k;
  if (c->recorder.trace && hn_recording(&c->recorder) && c->apart &&
      (s->kind == HN_STEP_LATE || s->kind == HN_STEP_COPY)) { /* the device's clock says how long it took */
    status = hn_recorder_mark(&c->recorder, hn_recorder_kind(s), (int32_t)k, error);
    if (status == HONE_OK) status = issue(c, s, error);
    if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_KIND_COUNT, -1, error);
  } else {
    hn_recorder_begin(&c->recorder);
    if (c->edge) c->edge(c->edge_arg, k, false);
    status = issue(c, s, error);
    if (c->edge) c->edge(c->edge_arg, k, true);
    hn_recorder_end(&c->recorder, s);
  }
  if (status == HONE_OK) status = show(c, s, error);
  if (status != HONE_OK) return status;
  after_step(c, s, k);
  if (HN_FAULT("sleep_between_steps")) hn_sleep_ms(2);
  return HONE_OK;
}

static hone_status run_steps(hn_context *c, hone_error *error) {
  for (uint32_t k = 0; k < c->plan->steps.len; k++) {
    hone_status status = run_one(c, k, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

/* The steps for one slice of the batch after the other. */
static hone_status run_slices(hn_context *c, hone_error *error) {
  const hone_tensor *const *all = c->given;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < c->plan->n_outputs && status == HONE_OK; i++)
    status = hn_slices_place(c->plan, &c->slices, i, hn_lent_whole(c->plan, &c->lent, i), error);
  for (uint32_t s = 0; s < c->plan->slices && status == HONE_OK; s++) {
    c->given = hn_slices_cut(c->plan, &c->slices, all, s);
    status = run_steps(c, error);
    for (uint32_t i = 0; i < c->plan->n_outputs && status == HONE_OK; i++) {
      const uint32_t slot = c->plan->output_slot[i];
      c->tensor[slot].data = data_of(c, slot);
      hn_slices_join(&c->slices, i, s, &c->tensor[slot]);
    }
  }
  c->given = all;
  return status;
}

/* ------------------------------------------------------------------ accelerators */

/* Must the device have done what it was given before the step begins? The host reads what it has copied; a
 * late step does when some of its inputs are the host's and no caller gave them. */
static bool waits(const hn_plan *p, const hn_step *s) {
  if (s->kind == HN_STEP_REF || s->kind == HN_STEP_CONTROL) return true;
  for (uint32_t i = 0; s->kind == HN_STEP_LATE && i < s->desc.n_inputs; i++) {
    if (s->in[i] == HN_NO_SLOT) continue;
    const hn_slot *r = &p->slots.ptr[hn_slot_root(p, s->in[i])];
    if (!r->desc.device && r->place == HN_PLACE_ARENA) return true;
  }
  return false;
}

/* Must step k, on its own lane behind step `tail` (UINT32_MAX: the first), wait for lane l? */
static bool needs_lane(const hn_plan *p, const piece *x, uint32_t k, uint32_t l, uint32_t tail) {
  for (uint32_t j = x->first; j < k; j++)
    if (p->steps.ptr[j].lane == l && hn_before(p, j, k) && (tail == UINT32_MAX || !hn_before(p, j, tail)))
      return true;
  return false;
}

/* Lanes of a piece: all begin behind lane 0, and lane 0 ends behind all. */
static hone_status meet(hn_context *c, bool begin, hone_error *error) {
  const hn_plan *p = c->plan;
  hone_status status = HONE_OK;
  for (uint32_t l = 1; l < p->lanes && status == HONE_OK; l++)
    status = p->backend->follow(p->device, c->remote.queue, begin ? l : 0, begin ? 0 : l, error);
  p->backend->lane(p->device, c->remote.queue, 0);
  return status;
}

/* Gives a piece's steps to their lanes. A step waits for the lanes that make what it reads, unless its own
 * lane is behind them already. */
static hone_status issue_piece(hn_context *c, const piece *x, hone_error *error) {
  const hn_plan *p = c->plan;
  uint32_t tail[HN_LANES];
  memset(tail, 0xff, sizeof tail);
  hone_status status = meet(c, true, error);
  for (uint32_t k = x->first; k < x->first + x->count && status == HONE_OK; k++) {
    const hn_step *s = &p->steps.ptr[k];
    for (uint32_t l = 0; l < p->lanes && status == HONE_OK; l++) {
      if (l != s->lane && tail[l] != UINT32_MAX && needs_lane(p, x, k, l, tail[s->lane]))
        status = p->backend->follow(p->device, c->remote.queue, s->lane, l, error);
    }
    p->backend->lane(p->device, c->remote.queue, s->lane);
    if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, hn_recorder_kind(s), (int32_t)k, error);
    if (status == HONE_OK) status = issue(c, s, error);
    if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_KIND_COUNT, -1, error);
    tail[s->lane] = k;
  }
  hone_error other = {0};
  hone_status met = meet(c, false, status == HONE_OK ? error : &other);
  return status == HONE_OK ? met : status;
}

/* Captures the pieces, again when they were before: what a trace wants to know of them goes into segments. */
static hone_status capture(hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  for (uint32_t i = 0; i < c->n_pieces; i++) {
    piece *x = &c->pieces[i];
    if (x->apart) continue;
    if (x->segment) p->backend->segment_free(p->device, x->segment);
    x->segment = NULL;
    hone_status status = p->backend->capture_begin(p->device, c->remote.queue, error);
    if (status != HONE_OK) return status;
    status = issue_piece(c, x, error);
    hone_error other = {0};
    hone_status ended =
        p->backend->capture_end(p->device, c->remote.queue, &x->segment, status == HONE_OK ? error : &other);
    if (status == HONE_OK) status = ended;
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

/* Cuts the steps at those that cannot be captured, and captures what lies between them. What cannot be
 * captured is launched step by step. */
static hone_status cut(hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  const uint32_t n = (uint32_t)p->steps.len;
  c->pieces = hn_calloc(n + 1, sizeof *c->pieces);
  if (!c->pieces) return hn_fail_memory(error, n * sizeof *c->pieces, "a context");
  for (uint32_t k = 0; k < n; k++) {
    const bool apart = hn_step_apart(p, &p->steps.ptr[k]);
    piece *last = c->n_pieces ? &c->pieces[c->n_pieces - 1] : NULL;
    if (!last || apart || last->apart) {
      last = &c->pieces[c->n_pieces++];
      *last = (piece){k, 0, apart, NULL};
    }
    last->count++;
  }
  return capture(c, error);
}

/* The pieces in order. */
static hone_status run_pieces(hn_context *c, bool whole, hone_error *error) {
  const hn_plan *p = c->plan;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < c->n_pieces && status == HONE_OK; i++) {
    const piece *x = &c->pieces[i];
    if (x->apart && !waits(p, &p->steps.ptr[x->first])) {
      status = run_one(c, x->first, error);
    } else if (x->apart) {
      const int64_t start = hn_recording(&c->recorder) ? (int64_t)hn_now_ns() : 0;
      status = p->backend->sync(p->device, c->remote.queue, error);
      hn_recorder_host(&c->recorder, HONE_SPAN_SYNC, start, "wait for the device");
      if (status == HONE_OK) status = run_one(c, x->first, error);
    } else if (whole && x->segment) {
      status = hn_budget_check(&c->ref.budget, error);
      if (status == HONE_OK)
        status = p->backend->segment_launch(p->device, c->remote.queue, x->segment, error);
      for (uint32_t k = x->first; k < x->first + x->count; k++) after_step(c, &p->steps.ptr[k], k);
    } else
      for (uint32_t k = x->first; k < x->first + x->count && status == HONE_OK; k++)
        status = run_one(c, k, error);
  }
  return status;
}

/* What is bound in the device's memory is read there, everything else in the block of inputs. Captured work
 * knows addresses: when one changes it is captured anew. */
static hone_status place_inputs(hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  bool moved = false;
  for (uint32_t i = 0; i < c->remote.n_inputs; i++) {
    const hn_remote_input *s = &c->remote.input[i];
    const hone_tensor *t = c->given[s->input];
    const bool there =
        t->desc.device && (uintptr_t)t->data % 256 == 0 && t == hn_lent_input_of(&c->lent, s->input);
    void *want = there ? t->data : (char *)c->remote.staged + s->offset;
    if (c->tensor[s->slot].data == want) continue;
    hn_slot_move(p, c->tensor, s->slot, want);
    moved = true;
  }
  return moved ? capture(c, error) : HONE_OK;
}

/* Inputs to the device, the pieces in order, outputs back. */
static hone_status run_remote(hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  const bool whole = !c->watch && (!hn_recording(&c->recorder) || c->recorder.trace);
  hone_status status = place_inputs(c, error);
  if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_COPY_H2D, -1, error);
  if (status == HONE_OK) status = hn_remote_give(p, &c->remote, c->tensor, c->given, error);
  if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_KIND_COUNT, -1, error);
  const int64_t gathered =
      hn_recorder_host(&c->recorder, HONE_SPAN_COPY_H2D, c->recorder.run_start, "gather inputs");
  if (status == HONE_OK) status = run_pieces(c, whole, error);
  if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_COPY_D2H, -1, error);
  if (status == HONE_OK) status = hn_remote_take(p, &c->remote, &c->lent, c->tensor, error);
  if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_KIND_COUNT, -1, error);
  const int64_t given = hn_recorder_host(&c->recorder, HONE_SPAN_HOST, gathered, "launch");
  hone_error other = {0}; /* whatever happened, nothing may run on in this context's memory */
  hone_status synced = p->backend->sync(p->device, c->remote.queue, status == HONE_OK ? error : &other);
  hn_recorder_host(&c->recorder, HONE_SPAN_SYNC, given, "wait for the device");
  return status == HONE_OK ? synced : status;
}

/* Three quarters of what the system has. To ask takes as long as a small step: now and then will do. */
static uint64_t most_bytes(hn_context *c) {
  const uint64_t now = hn_now_ns();
  if (!c->most_bytes || now - c->most_bytes_at > 100000000) {
    c->most_bytes = hn_memory_available() / 4 * 3;
    c->most_bytes_at = now;
  }
  return c->most_bytes;
}

static void *own(void *self, size_t bytes) {
  return hn_arena_aligned(&((hn_context *)self)->own, bytes, HN_MEM_ALIGN);
}

/* What is in sequences is shared by all that is made of them, and outputs outlive what a caller gave. */
static hone_status adopt(hn_context *c, const hone_tensor *const *in, hone_error *error) {
  hn_arena_free(&c->own);
  c->given = in;
  if (!c->adopted) return HONE_OK;
  for (uint32_t i = 0; i < c->plan->n_inputs; i++) {
    const bool plain = hone_dtype_is_tensor(in[i]->desc.dtype);
    c->adopted[i] = plain ? in[i] : hn_items_copy(in[i], own, c);
    if (!c->adopted[i]) return hn_fail_memory(error, 0, "a sequence that was given");
  }
  c->given = c->adopted;
  return HONE_OK;
}

/* Output i in the context's own memory. */
static const hone_tensor *made(const hn_context *c, uint32_t i) {
  if (c->apart && c->remote.returned_at[i] != UINT64_MAX) return &c->returned[i];
  if (c->slices.whole) return &c->slices.whole[i];
  return &c->tensor[c->plan->output_slot[i]];
}

/* Where the outputs of the run are, and copies of those that the caller wants elsewhere. */
static hone_status show_outputs(hn_context *c, hone_error *error) {
  const int64_t start = c->lent.output && hn_recording(&c->recorder) ? (int64_t)hn_now_ns() : 0;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; status == HONE_OK && i < c->plan->n_outputs; i++) {
    uint32_t slot = c->plan->output_slot[i], root = hn_slot_root(c->plan, slot);
    c->tensor[slot].data = data_of(c, slot);
    if (c->apart && c->remote.returned_at[i] != UINT64_MAX) {
      c->returned[i] =
          (hone_tensor){c->tensor[slot].desc, (char *)c->remote.returned + c->remote.returned_at[i]};
      c->returned[i].desc.device = 0;
    } else if (c->plan->slots.ptr[root].place == HN_PLACE_HEAP && slot == root)
      c->tensor[slot].desc.device = 0;
    status = hn_lent_fill(c->plan, &c->lent, i, made(c, i), error);
  }
  if (c->lent.output) hn_recorder_host(&c->recorder, HONE_SPAN_HOST, start, "outputs to the caller's memory");
  return status;
}

static void gather_lent(hn_context *c, const hone_tensor *const *in) {
  if (!hn_lent_gathers(c->plan, &c->lent, in)) return;
  hn_lent_gather(c->plan, &c->lent, in);
  hn_recorder_host(&c->recorder, HONE_SPAN_HOST, c->recorder.run_start, "gather inputs");
}

hone_status hn_context_run(hn_context *c, const hone_tensor *const *in, const hn_run_limits *limits,
                           hone_error *error) {
  const bool traced = c->recorder.trace && hn_recording(&c->recorder);
  if (traced) {
    hone_status begun = c->recorder.tracing->begin_run(c->recorder.trace, error);
    if (begun != HONE_OK) return begun;
  }
  uint64_t outer = c->recorder.facts ? hn_now_raw_ns() : 0;
  drop_all_heap(c);
  hn_arena_free(&c->ref.keep);
  hone_status adopted = adopt(c, in, error);
  if (adopted != HONE_OK) return adopted;
  c->heap_peak = c->touched = 0;
  c->ref.budget = (hn_budget){.cancel = &c->cancel};
  if (!c->apart) hn_pools_serve(c->plan, &c->ref.budget);
  if (limits) {
    if (limits->max_seconds > 0)
      c->ref.budget.deadline_ns = hn_now_ns() + (uint64_t)(limits->max_seconds * 1e9);
    c->ref.budget.max_bytes = limits->max_bytes;
    c->ref.budget.max_nodes = limits->max_nodes;
  }
  /* A model may ask for any amount at run time: stop before the system does. */
  if (!c->ref.budget.max_bytes && c->plan->has_heap) c->ref.budget.max_bytes = most_bytes(c);
  if (HN_FAULT("sleep_uninstrumented")) hn_sleep_ms(20);
  hn_recorder_run_begin(&c->recorder);
  gather_lent(c, in);
  hone_status status = hn_lent_place(c->plan, &c->lent, c->tensor, c->arena, error);
  if (status == HONE_OK)
    status = c->apart              ? run_remote(c, error)
             : c->plan->slices > 1 ? run_slices(c, error)
                                   : run_steps(c, error);
  if (status == HONE_OK) status = show_outputs(c, error);
  hn_recorder_run_end(&c->recorder, status == HONE_OK);
  atomic_store(&c->cancel, false);
  if (c->recorder.facts) hn_recorder_wall(&c->recorder, hn_now_raw_ns() - outer);
  if (traced && status == HONE_OK) status = c->recorder.tracing->end_run(c->recorder.trace, error);
  return status;
}

const hone_tensor *hn_context_output(const hn_context *c, uint32_t i) {
  if (i >= c->plan->n_outputs) return NULL;
  const hone_tensor *lent = hn_lent_result(&c->lent, i);
  return lent ? lent : made(c, i);
}

hn_lent *hn_context_lent(hn_context *c) { return &c->lent; }

void hn_context_clock(hn_context *c, bool on) { c->remote.clock = on; }

hone_status hn_context_times(const hn_context *c, double *h2d, double *infer, double *d2h,
                             hone_error *error) {
  double *out[] = {h2d, infer, d2h};
  for (int i = 0; i < 3; i++)
    if (out[i]) *out[i] = 0;
  return c->apart ? hn_remote_times(c->plan, &c->remote, h2d, infer, d2h, error) : HONE_OK;
}

/* The steps once more, on the inputs that lie there. */
static hone_status again(hn_context *c, hone_error *error) {
  if (!c->given) return hn_fail(error, HONE_ERROR_USAGE, "a context runs before it repeats");
  drop_all_heap(c);
  hn_arena_free(&c->ref.keep);
  c->ref.budget = (hn_budget){.cancel = &c->cancel};
  if (!c->apart) hn_pools_serve(c->plan, &c->ref.budget);
  return HONE_OK;
}

hone_status hn_context_issue(hn_context *c, hone_issue *out, hone_error *error) {
  const hn_plan *p = c->plan;
  *out = (hone_issue){0};
  hone_status status = again(c, error);
  if (status != HONE_OK) return status;
  const hn_launched before = p->backend->launched(c->remote.queue);
  const uint64_t start = hn_now_ns();
  status = run_pieces(c, false, error);
  out->seconds = (double)(hn_now_ns() - start) * 1e-9;
  const hn_launched after = p->backend->launched(c->remote.queue);
  out->kernels = (uint32_t)(after.kernels - before.kernels);
  out->driver_seconds = (double)(after.ns - before.ns) * 1e-9;
  hone_error other = {0};
  hone_status synced = p->backend->sync(p->device, c->remote.queue, status == HONE_OK ? error : &other);
  return status == HONE_OK ? synced : status;
}

hone_status hn_context_repeat(hn_context *c, double *seconds, hone_error *error) {
  const hn_plan *p = c->plan;
  hn_event *from = c->remote.mark[HN_MARK_GIVEN], *to = c->remote.mark[HN_MARK_DONE];
  *seconds = 0;
  hone_status status = again(c, error);
  if (status != HONE_OK) return status;
  status = p->backend->event_record(p->device, c->remote.queue, from, error);
  if (status == HONE_OK) status = run_pieces(c, !c->watch, error);
  if (status == HONE_OK) status = p->backend->event_record(p->device, c->remote.queue, to, error);
  hone_error other = {0};
  hone_status synced = p->backend->sync(p->device, c->remote.queue, status == HONE_OK ? error : &other);
  if (status == HONE_OK) status = synced;
  return status == HONE_OK ? p->backend->event_seconds(p->device, from, to, seconds, error) : status;
}

typedef struct counted {
  hn_context *context;
  uint32_t *step; /* numbers of those that the device does */
} counted;

static hone_status do_counted(void *arg, uint32_t i, hone_error *error) {
  const counted *w = arg;
  return issue(w->context, &w->context->plan->steps.ptr[w->step[i]], error);
}

static const struct {
  const char *name, *unit;
} counts[HN_COUNTS] = {
#define X(id, name, unit) [HN_COUNT_##id] = {name, unit},
    HN_DEVICE_COUNTS(X)
#undef X
};

static void write_counts(hone_facts *facts, const counted *w, const hn_counts *out, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    for (int k = 0; k < HN_COUNTS; k++)
      if (isfinite(out[i].value[k]))
        hone_facts_add_counter(
            facts, &(hone_counter){counts[k].name, counts[k].unit, (int32_t)w->step[i], out[i].value[k]});
  for (int k = 0; k < HN_COUNTS; k++) {
    bool read = !n;
    for (uint32_t i = 0; i < n && !read; i++) read = isfinite(out[i].value[k]);
    if (!read) hone_facts_add_unmeasured(facts, counts[k].name, "this device has no such counter");
  }
  if (!n)
    hone_facts_add_unmeasured(
        facts, "hardware counters",
        "the device does none of these steps: views, steps of the host, shapes that only the run knows");
}

hone_status hn_context_counters(hn_context *c, const uint32_t *steps, uint32_t n_steps, hone_facts *facts,
                                hone_error *error) {
  const hn_plan *p = c->plan;
  const uint32_t most = steps ? n_steps : (uint32_t)p->steps.len;
  if (!p->backend->counters)
    return hn_fail(error, HONE_ERROR_MISSING, "device %s has no counters", p->backend->name);
  counted w = {c, hn_calloc(most + 1, sizeof *w.step)};
  hn_counts *out = hn_calloc(most + 1, sizeof *out);
  uint32_t n = 0;
  hone_status status = w.step && out ? HONE_OK : hn_fail_memory(error, most * sizeof *out, "counters");
  for (uint32_t k = 0; status == HONE_OK && k < most; k++) {
    const uint32_t s = steps ? steps[k] : k;
    if (s < p->steps.len && p->steps.ptr[s].kind == HN_STEP_TACTIC) w.step[n++] = s;
  }
  p->backend->lane(p->device, c->remote.queue, 0);
  if (status == HONE_OK && n) status = p->backend->counters(p->device, n, do_counted, &w, out, error);
  hone_error other = {0};
  hone_status synced = p->backend->sync(p->device, c->remote.queue, status == HONE_OK ? error : &other);
  if (status == HONE_OK) status = synced;
  if (status == HONE_OK) write_counts(facts, &w, out, n);
  hn_free(w.step);
  hn_free(out);
  return status;
}

uint32_t hn_context_fallen_back(const hn_context *c, uint32_t *step, uint32_t most) {
  uint32_t n = 0;
  for (uint32_t k = 0; c->apart && k < c->plan->steps.len; k++) {
    if (!c->late.fell_back[k]) continue;
    if (n < most) step[n] = k;
    n++;
  }
  return n;
}

void hn_context_cancel(hn_context *c) { atomic_store(&c->cancel, true); }
void hn_context_stage_begin(hn_context *c, hone_span_kind kind) {
  hn_recorder_stage_begin(&c->recorder, kind);
}

void hn_context_stage_end(hn_context *c) { hn_recorder_stage_end(&c->recorder); }

void hn_context_edges(hn_context *c, hn_step_edge edge, void *arg) {
  c->edge = edge;
  c->edge_arg = arg;
}

void hn_context_watch(hn_context *c, hn_step_watch watch, void *arg, bool writes) {
  c->watch = watch;
  c->watch_writes = writes;
  c->watch_arg = arg;
}

uint64_t hn_context_peak(const hn_context *c) { return c->touched + c->heap_peak; }

/* Forgets what was recorded; segments without a trace are captured without it. */
static hone_status stop_recording(hn_context *c, hone_error *error) {
  const bool traced = c->recorder.trace;
  hn_recorder_free(&c->recorder);
  return traced ? capture(c, error) : HONE_OK;
}

hone_status hn_context_record(hn_context *c, hone_facts *facts, uint32_t max_runs, hone_error *error) {
  hone_status status = stop_recording(c, error);
  if (status != HONE_OK || !facts) return status;
  status = hn_recorder_init(&c->recorder, facts, c->plan, c->remote.queue, max_runs, error);
  c->recorder.late = c->apart ? &c->late : NULL;
  return status == HONE_OK && c->recorder.trace ? capture(c, error) : status;
}

hone_status hn_context_record_end(hn_context *c, hone_error *error) {
  if (!c->recorder.facts) return hn_fail(error, HONE_ERROR_USAGE, "nothing is being recorded");
  hone_status status = hn_recorder_finish(&c->recorder, c->plan, hn_context_peak(c), error);
  hone_error other = {0};
  hone_status stopped = stop_recording(c, status == HONE_OK ? error : &other);
  return status == HONE_OK ? stopped : status;
}
