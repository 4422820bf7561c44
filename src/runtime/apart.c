#include "base/error.h"
#include "runtime/inside.h"

#include <string.h>

enum { CAPTURES = 4 }; /* that are kept, unless more are asked for */

/* Must the device have done what it was given before the step begins? The host reads what is copied there; of
 * late steps and work on shapes, which know dimensions when the steps before have been given, only those that
 * do. copied: by slot, whether the device copies something to it. */
static bool waits(const hn_plan *p, const hn_step *s, const bool *copied) {
  if (s->kind == HN_STEP_CONTROL || (s->kind == HN_STEP_REF && !s->shape_work)) return true;
  for (uint32_t i = 0; (s->kind == HN_STEP_LATE || s->kind == HN_STEP_REF) && i < s->desc.n_inputs; i++)
    if (s->in[i] != HN_NO_SLOT && copied[hn_slot_root(p, s->in[i])]) return true;
  return false;
}

/* The same of a piece in a run: work on shapes writes where a copy may still read. */
static bool must_wait(const hn_context *c, const hn_piece *x) {
  return x->waits || (c->copying && c->plan->steps.ptr[x->first].kind == HN_STEP_REF);
}

/* Must step k, on its own lane behind step `tail` (UINT32_MAX: the first), wait for lane l? */
static bool needs_lane(const hn_plan *p, const hn_piece *x, uint32_t k, uint32_t l, uint32_t tail) {
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
static hone_status issue_piece(hn_context *c, const hn_piece *x, hone_error *error) {
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
    if (status == HONE_OK) status = hn_steps_issue(c, s, error);
    if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_KIND_COUNT, -1, error);
    tail[s->lane] = k;
  }
  hone_error other = {0};
  hone_status met = meet(c, false, status == HONE_OK ? error : &other);
  return status == HONE_OK ? met : status;
}

/* ------------------------------------------------------------------ captured work */

static void drop_capture(hn_context *c, hn_capture *x) {
  for (uint32_t i = 0; x->segment && i < c->n_pieces; i++)
    if (x->segment[i]) c->plan->backend->segment_free(c->plan->device, x->segment[i]);
  hn_free(x->segment);
  hn_free(x->at);
  *x = (hn_capture){0};
}

void hn_apart_forget(hn_context *c) {
  for (uint32_t i = 0; i < c->n_pieces; i++) c->pieces[i].segment = NULL;
  while (c->n_captures) drop_capture(c, &c->capture[--c->n_captures]);
  c->stale = true;
}

static bool all_have_addresses(const hn_context *c) {
  for (uint32_t i = 0; i < c->plan->slots.len && c->plan->lends; i++)
    if (c->plan->slots.ptr[i].lent && !c->tensor[i].data) return false;
  return true;
}

/* Address number k of those that callers may change. */
static void *address(const hn_context *c, uint32_t k) {
  const uint32_t n = c->remote.n_inputs;
  return c->tensor[k < n ? c->remote.input[k].slot : hn_slot_root(c->plan, c->plan->output_slot[k - n])].data;
}

static bool lies_there(const hn_context *c, const hn_capture *x) {
  for (uint32_t k = 0; k < c->remote.n_inputs + c->plan->n_outputs; k++)
    if (x->at[k] != address(c, k)) return false;
  return true;
}

static void use(hn_context *c, hn_capture *x) {
  for (uint32_t i = 0; i < c->n_pieces; i++) c->pieces[i].segment = x->segment[i];
  x->used = c->captures_used++;
  c->stale = false;
}

/* A place for one more: that which was not used for longest goes. */
static hn_capture *room_for_one(hn_context *c) {
  if (c->n_captures == c->most_captures) {
    uint32_t last = 0;
    for (uint32_t i = 1; i < c->n_captures; i++)
      if (c->capture[i].used < c->capture[last].used) last = i;
    drop_capture(c, &c->capture[last]);
    c->capture[last] = c->capture[--c->n_captures];
  }
  c->capture[c->n_captures] = (hn_capture){0};
  return &c->capture[c->n_captures];
}

static hone_status capture_pieces(hn_context *c, hn_capture *to, hone_error *error) {
  const hn_plan *p = c->plan;
  const uint32_t n = c->remote.n_inputs + p->n_outputs;
  to->at = hn_calloc(n + 1, sizeof *to->at);
  to->segment = hn_calloc(c->n_pieces + 1, sizeof *to->segment);
  if (!to->at || !to->segment) return hn_fail_memory(error, n * sizeof *to->at, "captured work");
  for (uint32_t k = 0; k < n; k++) to->at[k] = address(c, k);
  for (uint32_t i = 0; i < c->n_pieces; i++) {
    const hn_piece *x = &c->pieces[i];
    if (x->apart) continue;
    hone_status status = p->backend->capture_begin(p->device, c->remote.queue, error);
    if (status != HONE_OK) return status;
    status = issue_piece(c, x, error);
    hone_error other = {0};
    hone_status ended = p->backend->capture_end(p->device, c->remote.queue, &to->segment[i],
                                                status == HONE_OK ? error : &other);
    if (status == HONE_OK) status = ended;
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}

static hone_status capture(hn_context *c, hone_error *error) {
  for (uint32_t i = 0; i < c->n_pieces; i++) c->pieces[i].segment = NULL; /* they may know old addresses */
  c->stale = true;
  if (!all_have_addresses(c)) return HONE_OK;
  hn_capture *x = room_for_one(c);
  hone_status status = capture_pieces(c, x, error);
  if (status == HONE_ERROR_MEMORY && c->n_captures) { /* that of others may be what is missing */
    drop_capture(c, x);
    hn_apart_forget(c);
    x = room_for_one(c);
    status = capture_pieces(c, x, error);
  }
  if (status != HONE_OK) {
    drop_capture(c, x);
    return status;
  }
  c->captured++;
  c->n_captures++;
  use(c, x);
  return HONE_OK;
}

hone_status hn_apart_capture(hn_context *c, hone_error *error) {
  hn_apart_forget(c);
  return capture(c, error);
}

/* What callers lend may go to and fro between a few places: each has its own. */
static hone_status follow_addresses(hn_context *c, hone_error *error) {
  for (uint32_t i = 0; i < c->n_captures; i++) {
    if (!lies_there(c, &c->capture[i])) continue;
    use(c, &c->capture[i]);
    return HONE_OK;
  }
  return capture(c, error);
}

hone_status hn_context_keep_captures(hn_context *c, uint32_t most, hone_error *error) {
  if (!c->apart || most <= c->most_captures) return HONE_OK;
  hn_capture *more = hn_realloc(c->capture, most * sizeof *more);
  if (!more) return hn_fail_memory(error, most * sizeof *more, "captured work");
  c->capture = more, c->most_captures = most;
  return HONE_OK;
}

uint64_t hn_context_captured(const hn_context *c) { return c->captured; }

hone_status hn_apart_open(hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  const uint32_t n = (uint32_t)p->steps.len;
  bool *copied = hn_calloc(p->slots.len + 1, sizeof *copied);
  c->pieces = hn_calloc(n + 1, sizeof *c->pieces);
  if (!c->pieces || !copied) {
    hn_free(copied);
    return hn_fail_memory(error, n * sizeof *c->pieces, "a context");
  }
  for (uint32_t k = 0; k < n; k++)
    if (p->steps.ptr[k].kind == HN_STEP_COPY) copied[hn_slot_root(p, p->steps.ptr[k].out[0])] = true;
  for (uint32_t k = 0; k < n; k++) {
    const hn_step *s = &p->steps.ptr[k];
    const bool apart = hn_step_apart(p, s);
    hn_piece *last = c->n_pieces ? &c->pieces[c->n_pieces - 1] : NULL;
    if (!last || apart || last->apart) {
      last = &c->pieces[c->n_pieces++];
      *last = (hn_piece){.first = k, .apart = apart, .waits = apart && waits(p, s, copied)};
    }
    last->copies |= s->kind == HN_STEP_COPY;
    last->count++;
  }
  hn_free(copied);
  const hone_status status = hn_context_keep_captures(c, CAPTURES, error);
  return status == HONE_OK ? hn_apart_capture(c, error) : status;
}

void hn_apart_close(hn_context *c) {
  hn_apart_forget(c);
  hn_free(c->capture);
  hn_free(c->pieces);
}

/* What the step of a piece must wait for: the device, or counts that it has made. */
static hone_status wait_for(hn_context *c, const hn_piece *x, hone_error *error) {
  const hn_plan *p = c->plan;
  const bool all = must_wait(c, x);
  if (!all && !hn_late_wants_counts(&c->late, &p->steps.ptr[x->first])) return HONE_OK;
  const int64_t start = hn_recording(&c->recorder) ? (int64_t)hn_now_ns() : 0;
  hone_status status = c->late.counts.len ? hn_late_settle(&c->late, error)
                                          : p->backend->sync(p->device, c->remote.queue, error);
  hn_recorder_host(&c->recorder, HONE_SPAN_SYNC, start, "wait for the device");
  c->copying = false;
  return status;
}

hone_status hn_apart_pieces(hn_context *c, bool whole, hone_error *error) {
  const hn_plan *p = c->plan;
  hone_status status = HONE_OK;
  hn_late_forget_counts(&c->late);
  for (uint32_t i = 0; i < c->n_pieces && status == HONE_OK; i++) {
    const hn_piece *x = &c->pieces[i];
    c->copying |= x->copies;
    if (x->apart) {
      status = wait_for(c, x, error);
      if (status == HONE_OK) status = hn_steps_do(c, x->first, error);
    } else if (whole && x->segment) {
      status = hn_budget_check(&c->ref.budget, error);
      if (status == HONE_OK)
        status = p->backend->segment_launch(p->device, c->remote.queue, x->segment, error);
      for (uint32_t k = x->first; k < x->first + x->count; k++) hn_steps_done(c, &p->steps.ptr[k], k);
    } else
      for (uint32_t k = x->first; k < x->first + x->count && status == HONE_OK; k++)
        status = hn_steps_do(c, k, error);
  }
  return status == HONE_OK ? hn_late_settle(&c->late, error) : status;
}

/* What is bound in the device's memory is read there, everything else in the block of inputs. Captured work
 * knows addresses: when one changes, also of an output, it is captured anew, unless it was before. */
static hone_status place_inputs(hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  for (uint32_t i = 0; i < c->remote.n_inputs; i++) {
    const hn_remote_input *s = &c->remote.input[i];
    const hone_tensor *t = c->given[s->input];
    const bool there =
        t->desc.device && (uintptr_t)t->data % 256 == 0 && t == hn_lent_input_of(&c->lent, s->input);
    if (!there && p->slots.ptr[s->slot].lent) {
      hn_fail(error, HONE_ERROR_USAGE, "input '%s' is not bound to the device's memory, aligned to 256 bytes",
              p->inputs[s->input]->name);
      hn_error_hint(error, "the plan was made with hone_plan_options.over_bound");
      return HONE_ERROR_USAGE;
    }
    void *want = there ? t->data : (char *)c->remote.staged + s->offset;
    if (c->tensor[s->slot].data == want) continue;
    hn_slot_move(p, c->tensor, s->slot, want);
    c->stale = true;
  }
  return c->stale ? follow_addresses(c, error) : HONE_OK;
}

/* What a kernel could not do ends the run as it does on the host, if later. */
static hone_status check_refused(hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  const hone_node *node = p->backend->refused(c->remote.queue);
  if (!node) return HONE_OK;
  hn_fail(error, HONE_ERROR_INPUT, "an index, a length or a position is outside of what there is");
  for (size_t k = 0; k < p->steps.len; k++) {
    const hone_step *s = &p->steps.ptr[k].desc;
    if (s->node != node) continue;
    if (strcmp(s->anchor, "Div") == 0 || strcmp(s->anchor, "Mod") == 0)
      hn_fail(error, HONE_ERROR_INPUT, "integer division by zero");
    if (error) hn_error_where(error, "node '%s' (%s)", s->name, s->anchor);
    break;
  }
  return HONE_ERROR_INPUT;
}

hone_status hn_apart_run(hn_context *c, hone_error *error) {
  const hn_plan *p = c->plan;
  const bool whole = !c->watch && (!hn_recording(&c->recorder) || c->recorder.trace);
  hone_status status = place_inputs(c, error);
  c->copying = false;
  p->backend->refused(c->remote.queue); /* nothing of work that was no run */
  if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_COPY_H2D, -1, error);
  if (status == HONE_OK) status = hn_remote_give(p, &c->remote, c->tensor, c->given, error);
  if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_KIND_COUNT, -1, error);
  const int64_t gathered =
      hn_recorder_host(&c->recorder, HONE_SPAN_COPY_H2D, c->recorder.run_start, "gather inputs");
  if (status == HONE_OK) status = hn_apart_pieces(c, whole, error);
  if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_COPY_D2H, -1, error);
  if (status == HONE_OK) status = hn_remote_take(p, &c->remote, &c->lent, c->tensor, error);
  if (status == HONE_OK) status = hn_recorder_mark(&c->recorder, HONE_SPAN_KIND_COUNT, -1, error);
  const int64_t given = hn_recorder_host(&c->recorder, HONE_SPAN_HOST, gathered, "launch");
  hone_error other = {0}; /* whatever happened, nothing may run on in this context's memory */
  hone_status synced = p->backend->sync(p->device, c->remote.queue, status == HONE_OK ? error : &other);
  hn_recorder_host(&c->recorder, HONE_SPAN_SYNC, given, "wait for the device");
  if (status == HONE_OK) status = synced;
  return status == HONE_OK ? check_refused(c, error) : status;
}
