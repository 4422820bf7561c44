#include "base/error.h"
#include "base/fault.h"
#include "runtime/inside.h"
#include "runtime/room.h"

static void drop_heap(hn_context *c, uint32_t slot) {
  hone_tensor *t = &c->tensor[slot];
  if (!t->data) return;
  if (c->plan->slots.ptr[slot].desc.device) {
    hn_late_give(&c->late, t->data);
    t->data = NULL;
    return;
  }
  if (hn_lent_holds(c->plan, &c->lent, t->data)) {
    t->data = NULL;
    return;
  }
  int64_t bytes = hone_desc_bytes(&t->desc);
  if (bytes > 0 && (uint64_t)bytes <= c->ref.budget.bytes) c->ref.budget.bytes -= (uint64_t)bytes;
  hn_heap_free(&c->ref, t->data);
  t->data = NULL;
}

void hn_steps_drop(hn_context *c) {
  for (uint32_t i = 0; i < c->plan->slots.len; i++)
    if (c->plan->slots.ptr[i].place == HN_PLACE_HEAP && c->plan->slots.ptr[i].alias == HN_NO_SLOT)
      drop_heap(c, i);
}

void *hn_steps_data(const hn_context *c, uint32_t slot) {
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
    if (place == HN_PLACE_INPUT || place == HN_PLACE_HEAP) c->tensor[slot].data = hn_steps_data(c, slot);
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

void hn_steps_done(hn_context *c, const hn_step *s, uint32_t k) {
  const hn_plan *p = c->plan;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    if (s->out[i] == HN_NO_SLOT) continue;
    const hn_slot *r = &p->slots.ptr[hn_slot_root(p, s->out[i])];
    if (r->place == HN_PLACE_ARENA && !r->lent && r->offset + r->bytes > c->touched)
      c->touched = r->offset + r->bytes;
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

hone_status hn_steps_issue(hn_context *c, const hn_step *s, hone_error *error) {
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
    bool done;
    status = hn_late_run(&c->late, (uint32_t)(s - p->steps.ptr), c->in, c->ref.tin, c->ref.tout, &c->ref.keep,
                         &c->ref.budget, &done, error);
    if (status == HONE_OK && !done) status = hn_run_reference(&c->ref, s, error);
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
  if ((status = hn_late_settle(&c->late, error)) != HONE_OK) return status;
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

hone_status hn_steps_do(hn_context *c, uint32_t k, hone_error *error) {
  const hn_step *s = &c->plan->steps.ptr[k];
  hone_status status = hn_budget_check(&c->ref.budget, error);
  if (status != HONE_OK) return status;
  c->recorder.step = k;
  if (c->recorder.trace && hn_recording(&c->recorder) && c->apart &&
      (s->kind == HN_STEP_LATE || s->kind == HN_STEP_COPY)) { /* the device's clock says how long it took */
    status = hn_recorder_mark(&c->recorder, hn_recorder_kind(s), (int32_t)k, error);
    if (status == HONE_OK) status = hn_steps_issue(c, s, error);
    if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_KIND_COUNT, -1, error);
  } else {
    hn_recorder_begin(&c->recorder);
    if (c->edge) c->edge(c->edge_arg, k, false);
    status = hn_steps_issue(c, s, error);
    if (c->edge) c->edge(c->edge_arg, k, true);
    hn_recorder_end(&c->recorder, s);
  }
  if (status == HONE_OK) status = show(c, s, error);
  if (status != HONE_OK) return status;
  hn_steps_done(c, s, k);
  if (HN_FAULT("sleep_between_steps")) hn_sleep_ms(2);
  return HONE_OK;
}

hone_status hn_steps_all(hn_context *c, hone_error *error) {
  for (uint32_t k = 0; k < c->plan->steps.len; k++) {
    hone_status status = hn_steps_do(c, k, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}
