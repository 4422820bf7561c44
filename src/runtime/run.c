#include "base/error.h"
#include "base/fault.h"
#include "model/ir/items.h"
#include "runtime/inside.h"
#include "runtime/pools.h"

/* The steps for one slice of the batch after the other. */
static hone_status run_slices(hn_context *c, hone_error *error) {
  const hone_tensor *const *all = c->given;
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < c->plan->n_outputs && status == HONE_OK; i++)
    status = hn_slices_place(c->plan, &c->slices, i, hn_lent_whole(c->plan, &c->lent, i), error);
  for (uint32_t s = 0; s < c->plan->slices && status == HONE_OK; s++) {
    c->given = hn_slices_cut(c->plan, &c->slices, all, s);
    status = hn_steps_all(c, error);
    for (uint32_t i = 0; i < c->plan->n_outputs && status == HONE_OK; i++) {
      const uint32_t slot = c->plan->output_slot[i];
      c->tensor[slot].data = hn_steps_data(c, slot);
      hn_slices_join(&c->slices, i, s, &c->tensor[slot]);
    }
  }
  c->given = all;
  return status;
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
    c->tensor[slot].data = hn_steps_data(c, slot);
    if (c->apart && c->remote.returned_at[i] != UINT64_MAX) {
      c->returned[i] =
          (hone_tensor){c->tensor[slot].desc, (char *)c->remote.returned + c->remote.returned_at[i]};
      c->returned[i].desc.device = 0;
      if (c->plan->slots.ptr[root].lent) c->returned[i].data = NULL; /* there is no room for it */
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
  hn_steps_drop(c);
  hn_arena_free(&c->ref.keep);
  hone_status adopted = adopt(c, in, error);
  if (adopted != HONE_OK) return adopted;
  c->heap_peak = c->touched = 0;
  c->ref.budget = (hn_budget){.cancel = &c->cancel};
  if (!c->apart) hn_pools_serve(c->plan, &c->ref.budget);
  if (!c->apart && !c->plan->reference) {
    c->ref.budget.quick = hn_late_body;
    c->ref.budget.quick_self = &c->late;
  }
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
  hone_status status = hn_lent_place(c->plan, &c->lent, c->tensor, c->arena, &c->stale, error);
  if (status == HONE_OK)
    status = c->apart              ? hn_apart_run(c, error)
             : c->plan->slices > 1 ? run_slices(c, error)
                                   : hn_steps_all(c, error);
  if (status == HONE_OK) status = show_outputs(c, error);
  if (status != HONE_OK) c->given = NULL; /* nothing to repeat */
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
  return traced ? hn_apart_capture(c, error) : HONE_OK;
}

hone_status hn_context_record(hn_context *c, hone_facts *facts, uint32_t max_runs, hone_error *error) {
  hone_status status = stop_recording(c, error);
  if (status != HONE_OK || !facts) return status;
  status = hn_recorder_init(&c->recorder, facts, c->plan, c->remote.queue, max_runs, error);
  c->recorder.late = &c->late;
  return status == HONE_OK && c->recorder.trace ? hn_apart_capture(c, error) : status;
}

hone_status hn_context_record_end(hn_context *c, hone_error *error) {
  if (!c->recorder.facts) return hn_fail(error, HONE_ERROR_USAGE, "nothing is being recorded");
  hone_status status = hn_recorder_finish(&c->recorder, c->plan, hn_context_peak(c), error);
  hone_error other = {0};
  hone_status stopped = stop_recording(c, status == HONE_OK ? error : &other);
  return status == HONE_OK ? stopped : status;
}
