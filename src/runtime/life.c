#include "base/error.h"
#include "optimize/plan/plan.h"
#include "runtime/inside.h"
#include "runtime/late_bind.h"
#include "runtime/pools.h"
#include "runtime/room.h"

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
    if (root->lent)
      c->tensor[i].data = NULL; /* bound before each run */
    else if (root->place == HN_PLACE_ARENA)
      c->tensor[i].data = (char *)(c->apart && !root->desc.device ? c->remote.host : c->arena) +
                          root->offset + (s == root ? 0 : s->offset);
  }
}

/* What every slot is, and where it lies unless in the arenas. */
static void describe(hn_context *c) {
  const hn_plan *p = c->plan;
  for (uint32_t i = 0; i < p->slots.len; i++) {
    const hn_slot *s = &p->slots.ptr[i], *root = &p->slots.ptr[hn_slot_root(p, i)];
    c->tensor[i].desc = s->desc;
    if (root->place == HN_PLACE_STAGED && !root->lent)
      c->tensor[i].data = (char *)c->remote.staged + root->offset + (s == root ? 0 : s->offset);
    else if (root->place == HN_PLACE_CONST)
      c->tensor[i].data = (void *)s->constant;
  }
}

hone_status hn_context_move(hn_context *c, void *block, hone_error *error) {
  settle_in(c, block);
  lay_out(c);
  hn_lent_forget(c->plan, &c->lent);
  return c->apart ? hn_apart_capture(c, error) : HONE_OK;
}

/* Memory of its own for activations and workspace, where it has less than the plan wants; who asks looks
 * whether it is there. */
static void take_room(hn_context *c) {
  const hn_plan *p = c->plan;
  const uint64_t workspace = p->workspace_bytes ? hn_room_of_lane(p) * p->lanes : 0;
  if (p->arena_bytes > c->arena_bytes) {
    hn_pools_give(p, c->arena);
    c->arena = hn_pools_take(p, HONE_MEMORY_FOR_ACTIVATIONS, p->arena_bytes);
    c->arena_bytes = c->arena ? p->arena_bytes : 0;
  }
  if (workspace > c->workspace_bytes) {
    hn_pools_give(p, c->workspace);
    c->workspace = hn_pools_take(p, HONE_MEMORY_FOR_WORKSPACE, workspace);
    c->workspace_bytes = c->workspace ? workspace : 0;
  }
}

static bool has_room(const hn_context *c) {
  return (c->arena || !c->plan->arena_bytes) && (c->workspace || !c->plan->workspace_bytes);
}

static hone_status no_room(const hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  return hn_room_missing(p, p->workspace_bytes && !c->workspace && (c->arena || !p->arena_bytes), error);
}

void hn_context_forget(hn_context *c) {
  hn_steps_drop(c);
  hn_late_forget(&c->late);
  lay_out(c); /* not in the caller's memory any more, whether the plan becomes another or stays */
  hn_lent_free(c->plan, &c->lent);
  hn_apart_forget(c);
  c->given = NULL; /* nothing to repeat */
}

hone_status hn_context_follow(hn_context *c, hone_error *error) {
  take_room(c);
  if (!has_room(c)) return no_room(c, error);
  describe(c);
  lay_out(c);
  return HONE_OK;
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
  c->ref.lent = &c->lent;
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
  if ((status = hn_late_open(p, &c->remote, &c->lent, &c->late, error)) != HONE_OK) goto done;
  if (block) settle_in(c, block);
  if (!block) take_room(c);
  if (!c->in || !c->out || !c->ref.tin || !c->ref.tout || !c->tensor || !c->returned || !has_room(c)) {
    status = no_room(c, error);
    goto done;
  }
  describe(c);
  lay_out(c);
  if (c->apart) status = hn_apart_open(c, error);
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

void hn_context_destroy(hn_context *c) {
  if (!c) return;
  if (c->tensor) hn_steps_drop(c);
  hn_recorder_free(&c->recorder);
  hn_apart_close(c);
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
