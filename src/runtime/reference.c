/* References as steps of a plan. */
#include "runtime/reference.h"

#include "base/error.h"
#include "base/strided.h"
#include "runtime/pools.h"
#include "runtime/slices_of_reference.h"

#include <string.h>

void hn_heap_free(const hn_references *r, void *at) {
  if (r->apart)
    hn_free(at);
  else
    hn_pools_give(r->plan, at);
}

static hone_status keep_static(hone_call *call, uint32_t i, const hone_tensor_desc *desc, hone_error *error) {
  if (i >= call->n_outputs || !call->output[i] || hone_desc_same_dims(&call->output[i]->desc, desc))
    return HONE_OK;
  return hn_fail(error, HONE_ERROR_INTERNAL, "%s makes another shape than it announced",
                 hone_node_op(call->node));
}

static void *step_scratch(hone_call *call, size_t bytes) {
  hn_references *r = call->impl;
  size_t at = hn_round_up(r->scratch_used, HN_MEM_ALIGN);
  r->scratch_wanted = hn_round_up(r->scratch_wanted, HN_MEM_ALIGN) + bytes;
  if (bytes <= r->scratch_size && at <= r->scratch_size - bytes) {
    r->scratch_used = at + bytes;
    return (char *)r->scratch + at;
  }
  return hn_arena_aligned(&r->overflow, bytes, HN_MEM_ALIGN);
}

static void *step_keep(hone_call *call, size_t bytes) {
  return hn_arena_aligned(&((hn_references *)call->impl)->keep, bytes, HN_MEM_ALIGN);
}

static bool step_stopped(hone_call *call) {
  hn_references *r = call->impl;
  return (r->budget.cancel && atomic_load_explicit(r->budget.cancel, memory_order_relaxed)) ||
         (r->budget.deadline_ns && hn_now_ns() > r->budget.deadline_ns);
}

/* After a step: the scratch block grows once to what was wanted, so that the next run does not allocate. */
static void settle_scratch(hn_references *r) {
  r->scratch_used = 0;
  if (r->scratch_wanted > r->scratch_size) {
    hn_heap_free(r, r->scratch);
    r->scratch_size = 0;
    r->scratch = r->apart ? hn_aligned(HN_MEM_ALIGN, r->scratch_wanted)
                          : hn_pools_take(r->plan, HONE_MEMORY_FOR_WORKSPACE, r->scratch_wanted);
    if (r->scratch) r->scratch_size = r->scratch_wanted;
  }
  r->scratch_wanted = 0;
  if (r->overflow.head) hn_arena_free(&r->overflow);
}

typedef struct captured {
  const hn_references *r;
  const hn_step *step;
} captured;

static const hone_tensor *scope_find(void *self, const hn_value *v) {
  const hn_references *r = ((captured *)self)->r;
  const hn_step *s = ((captured *)self)->step;
  for (uint32_t i = 0; i < s->n_captured; i++) {
    uint32_t slot = s->in[s->desc.n_inputs + i];
    const hn_value *held = r->plan->slots.ptr[slot].value;
    /* By number: what a plan computed beforehand (weights from codes) has a value of its own, of that name.
     */
    if (held && held->id == v->id) return &r->tensor[slot];
  }
  return NULL;
}

hone_status hn_same_as_planned(const hn_step *s, uint32_t i, const hone_tensor_desc *made,
                               const hone_tensor_desc *planned, hone_error *error) {
  char a[96], b[96];
  if (hone_desc_same_dims(made, planned)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INPUT,
                 "output %u of %s has another shape in this run than the graph says: %s, not %s", i,
                 s->desc.anchor, hone_desc_format(made, a, sizeof a), hone_desc_format(planned, b, sizeof b));
}

/* A layout change that no tactic took; of a tensor whose shape the run alone knows, into memory of its own.
 */
static hone_status lay_out_anew(hn_references *r, const hn_step *s, hone_error *error) {
  const hone_tensor *x = r->tin[0];
  hone_tensor *y = r->tout[0];
  if (r->plan->slots.ptr[s->out[0]].place == HN_PLACE_HEAP) {
    memcpy(y->desc.dim, x->desc.dim, sizeof y->desc.dim);
    hone_desc_set_layout(&y->desc, HONE_LAYOUT_ROW_MAJOR, 0);
    const int64_t bytes = hone_desc_bytes(&y->desc);
    const hone_status status = hn_budget_alloc(&r->budget, bytes > 0 ? bytes : 0, &y->data, error);
    if (status != HONE_OK) return status;
  }
  hn_strided_copy(x, y);
  return HONE_OK;
}

/* Results of a step that go to the caller's memory at once. */
typedef struct lending {
  const hn_references *r;
  const hn_step *step;
} lending;

static hone_status lend(void *lender, uint32_t i, const hone_tensor_desc *desc, void **at,
                        hone_error *error) {
  lending *l = lender;
  *at = NULL;
  if (l->step->out[i] == HN_NO_SLOT) return HONE_OK;
  return hn_lent_late(l->r->plan, l->r->lent, l->step->out[i], desc, at, error);
}

static bool lent(void *lender, const void *at) {
  const lending *l = lender;
  return hn_lent_holds(l->r->plan, l->r->lent, at);
}

hone_status hn_run_reference(hn_references *r, const hn_step *s, hone_error *error) {
  if (!s->desc.node) return lay_out_anew(r, s, error);
  bool heap = s->kind == HN_STEP_CONTROL;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++)
    heap |= s->out[i] != HN_NO_SLOT && r->plan->slots.ptr[s->out[i]].place == HN_PLACE_HEAP;
  /* Operands whose shapes, or numbers that say shapes, the run alone knows may not fit together, also where
   * the plan knows the result's. */
  for (uint32_t i = 0; i < s->desc.n_inputs; i++) {
    if (s->in[i] == HN_NO_SLOT) continue;
    const hn_slot *slot = &r->plan->slots.ptr[s->in[i]];
    const bool counts = s->desc.node->op && i < 32 && s->desc.node->op->host_inputs >> i & 1;
    heap |= !hone_desc_known(&slot->desc) ||
            (counts && r->plan->slots.ptr[hn_slot_root(r->plan, s->in[i])].place != HN_PLACE_CONST);
  }
  if (s->kind == HN_STEP_CONTROL) {
    captured in = {r, s};
    hn_scope scope = {NULL, scope_find, &in};
    return hn_eval_control(s->desc.node, r->tin, r->tout, &scope, &r->keep, &r->budget, error);
  }
  if (heap) {
    /* The reference allocates; results that have a place in the arena are copied there. */
    hone_tensor made[16] = {0}, *out[16] = {0};
    if (s->desc.n_outputs > 16)
      return hn_fail(error, HONE_ERROR_UNSUPPORTED, "more than 16 outputs of unknown shape");
    for (uint32_t i = 0; i < s->desc.n_outputs; i++) out[i] = r->tout[i] ? &made[i] : NULL;
    lending lender = {.r = r, .step = s};
    if (r->lent && !r->apart) r->budget.lend = lend, r->budget.lent = lent, r->budget.lender = &lender;
    hone_status status = hn_eval_node(s->desc.node, r->tin, out, &r->keep, &r->budget, error);
    for (uint32_t i = 0; status == HONE_OK && i < s->desc.n_outputs; i++) {
      if (!out[i]) continue;
      if (r->plan->slots.ptr[s->out[i]].place == HN_PLACE_HEAP) {
        *r->tout[i] = made[i];
        made[i].data = NULL;
      } else {
        const int64_t bytes = hone_desc_bytes(&made[i].desc);
        status = hn_same_as_planned(s, i, &made[i].desc, &r->tout[i]->desc, error);
        if (status == HONE_OK && bytes > 0) memcpy(r->tout[i]->data, made[i].data, (size_t)bytes);
      }
    }
    for (uint32_t i = 0; i < s->desc.n_outputs; i++)
      if (made[i].data) hn_budget_release(&r->budget, &made[i]);
    r->budget.lend = NULL;
    return status;
  }
  hone_call call = {.node = s->desc.node,
                    .n_inputs = s->desc.n_inputs,
                    .n_outputs = s->desc.n_outputs,
                    .input = r->tin,
                    .output = r->tout,
                    .alloc_output = keep_static,
                    .scratch = step_scratch,
                    .scratch_keep = step_keep,
                    .stopped = step_stopped,
                    .impl = r};
  hone_status status;
  if (!hn_reference_in_slices(r->plan, &call, s->node->op, &status) || status != HONE_OK)
    status = s->node->op->reference(&call, error);
  if (status == HONE_ERROR_CANCELLED) { /* by the user, or by the clock? */
    hone_status why = hn_budget_check(&r->budget, error);
    if (why != HONE_OK) status = why;
  }
  settle_scratch(r);
  return status;
}
