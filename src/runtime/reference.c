/* References as steps of a plan. */
#include "runtime/inside.h"

#include "base/error.h"
#include "base/strided.h"
#include "runtime/pools.h"

#include <string.h>

static hone_status keep_static(hone_call *call, uint32_t i, const hone_tensor_desc *desc, hone_error *error) {
  if (i >= call->n_outputs || !call->output[i] || hone_desc_same_dims(&call->output[i]->desc, desc))
    return HONE_OK;
  return hn_fail(error, HONE_ERROR_INTERNAL, "%s makes another shape than it announced",
                 hone_node_op(call->node));
}

static void *step_scratch(hone_call *call, size_t bytes) {
  hn_context *c = call->impl;
  size_t at = hn_round_up(c->scratch_used, HN_MEM_ALIGN);
  c->scratch_wanted = hn_round_up(c->scratch_wanted, HN_MEM_ALIGN) + bytes;
  if (bytes <= c->scratch_size && at <= c->scratch_size - bytes) {
    c->scratch_used = at + bytes;
    return (char *)c->scratch + at;
  }
  return hn_arena_aligned(&c->overflow, bytes, HN_MEM_ALIGN);
}

static void *step_keep(hone_call *call, size_t bytes) {
  return hn_arena_aligned(&((hn_context *)call->impl)->keep, bytes, HN_MEM_ALIGN);
}

static bool step_stopped(hone_call *call) {
  hn_context *c = call->impl;
  return atomic_load_explicit(&c->cancel, memory_order_relaxed) ||
         (c->budget.deadline_ns && hn_now_ns() > c->budget.deadline_ns);
}

/* After a step: the scratch block grows once to what was wanted, so that the next run does not allocate. */
static void settle_scratch(hn_context *c) {
  c->scratch_used = 0;
  if (c->scratch_wanted > c->scratch_size) {
    hn_heap_free(c, c->scratch);
    c->scratch_size = 0;
    c->scratch = c->apart ? hn_aligned(HN_MEM_ALIGN, c->scratch_wanted)
                          : hn_pools_take(c->plan, HONE_MEMORY_FOR_WORKSPACE, c->scratch_wanted);
    if (c->scratch) c->scratch_size = c->scratch_wanted;
  }
  c->scratch_wanted = 0;
  if (c->overflow.head) hn_arena_free(&c->overflow);
}

static const hone_tensor *scope_find(void *self, const hn_value *v) {
  hn_context *c = self;
  const hn_step *s = &c->plan->steps.ptr[c->recorder.step];
  for (uint32_t i = 0; i < s->n_captured; i++) {
    uint32_t slot = s->in[s->desc.n_inputs + i];
    if (c->plan->slots.ptr[slot].value == v) return &c->tensor[slot];
  }
  return NULL;
}

hone_status hn_run_reference(hn_context *c, const hn_step *s, hone_error *error) {
  if (!s->desc.node) {
    hn_strided_copy(c->tin[0], c->tout[0]); /* a layout change that no tactic took */
    return HONE_OK;
  }
  bool heap = s->kind == HN_STEP_CONTROL;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++)
    heap |= s->out[i] != HN_NO_SLOT && c->plan->slots.ptr[s->out[i]].place == HN_PLACE_HEAP;
  if (s->kind == HN_STEP_CONTROL) {
    hn_scope scope = {NULL, scope_find, c};
    return hn_eval_control(s->desc.node, c->tin, c->tout, &scope, &c->keep, &c->budget, error);
  }
  if (heap) {
    /* The reference allocates; results that have a place in the arena are copied there. */
    hone_tensor made[16] = {0}, *out[16] = {0};
    if (s->desc.n_outputs > 16)
      return hn_fail(error, HONE_ERROR_UNSUPPORTED, "more than 16 outputs of unknown shape");
    for (uint32_t i = 0; i < s->desc.n_outputs; i++) out[i] = c->tout[i] ? &made[i] : NULL;
    hone_status status = hn_eval_node(s->desc.node, c->tin, out, &c->keep, &c->budget, error);
    for (uint32_t i = 0; status == HONE_OK && i < s->desc.n_outputs; i++) {
      if (!out[i]) continue;
      if (c->plan->slots.ptr[s->out[i]].place == HN_PLACE_HEAP) {
        *c->tout[i] = made[i];
      } else {
        int64_t bytes = hone_desc_bytes(&made[i].desc);
        if (bytes > hone_desc_bytes(&c->tout[i]->desc)) bytes = hone_desc_bytes(&c->tout[i]->desc);
        if (bytes > 0) memcpy(c->tout[i]->data, made[i].data, (size_t)bytes);
        c->budget.bytes -= (uint64_t)(bytes > 0 ? bytes : 0);
        hn_heap_free(c, made[i].data);
      }
    }
    return status;
  }
  hone_call call = {.node = s->desc.node,
                    .n_inputs = s->desc.n_inputs,
                    .n_outputs = s->desc.n_outputs,
                    .input = c->tin,
                    .output = c->tout,
                    .alloc_output = keep_static,
                    .scratch = step_scratch,
                    .scratch_keep = step_keep,
                    .stopped = step_stopped,
                    .impl = c};
  hone_status status = s->node->op->reference(&call, error);
  if (status == HONE_ERROR_CANCELLED) { /* by the user, or by the clock? */
    hone_status why = hn_budget_check(&c->budget, error);
    if (why != HONE_OK) status = why;
  }
  settle_scratch(c);
  return status;
}
