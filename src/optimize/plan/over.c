/* Outputs that may lie elsewhere than in the arena: in the caller's memory, or over an input. */
#include "base/error.h"
#include "base/strided.h"
#include "optimize/plan/plan.h"

bool hn_plan_movable(const hn_plan *p, uint32_t i) {
  const uint32_t slot = p->output_slot[i], root = hn_slot_root(p, slot);
  const hn_slot *s = &p->slots.ptr[slot], *r = &p->slots.ptr[root];
  if (p->slices > 1 || r->place != HN_PLACE_ARENA || !r->bytes) return false;
  if (p->backend->asynchronous && !s->desc.device) return false;
  if (s->bytes != r->bytes || (slot != root && s->offset)) return false;
  if (!hn_strided_dense(&s->desc) && p->output_desc[i].layout != HONE_LAYOUT_CHANNELS_LAST) return false;
  if (s->desc.dtype != p->output_desc[i].dtype) return false;
  for (uint32_t k = 0; k < p->n_outputs; k++)
    if (k != i && hn_slot_root(p, p->output_slot[k]) == root) return false;
  return true;
}

/* The slot, a root, over which output i may be made, or HN_NO_SLOT. */
static uint32_t find_over(const hn_plan *p, uint32_t i) {
  const uint32_t slot = p->output_slot[i];
  if (!hn_plan_movable(p, i)) return HN_NO_SLOT;
  for (uint32_t k = 0; k < p->steps.len; k++) {
    const hn_step *s = &p->steps.ptr[k];
    for (uint32_t j = 0; j < s->desc.n_outputs; j++) {
      if (s->out[j] == HN_NO_SLOT || hn_slot_root(p, s->out[j]) != hn_slot_root(p, slot)) continue;
      if (p->slots.ptr[s->out[j]].bytes != p->slots.ptr[slot].bytes)
        return HN_NO_SLOT; /* one of several that make it */
      if (s->kind != HN_STEP_TACTIC || !s->tactic->over) return HN_NO_SLOT;
      const int32_t in = s->tactic->over(&s->desc, j);
      if (in < 0 || (uint32_t)in >= s->desc.n_inputs || s->in[in] == HN_NO_SLOT) return HN_NO_SLOT;
      const uint32_t root = hn_slot_root(p, s->in[in]);
      const hn_slot *from = &p->slots.ptr[root];
      if ((from->place != HN_PLACE_INPUT && from->place != HN_PLACE_STAGED) || from->last != k ||
          from->bytes != p->slots.ptr[slot].bytes || !hn_plan_all_before(p, root, k))
        return HN_NO_SLOT;
      for (uint32_t q = 0, readers = 0; q < s->desc.n_inputs + s->n_captured; q++)
        if (s->in[q] != HN_NO_SLOT && hn_slot_root(p, s->in[q]) == root && ++readers > 1) return HN_NO_SLOT;
      return root;
    }
  }
  return HN_NO_SLOT;
}

int32_t hn_plan_over(const hn_plan *p, uint32_t i) {
  const uint32_t root = p->over ? p->over[i] : HN_NO_SLOT;
  return root == HN_NO_SLOT ? -1 : (int32_t)p->slots.ptr[root].input;
}

bool hn_plan_read_here(const hn_plan *p, uint32_t input) {
  for (size_t k = 0; k < p->steps.len; k++)
    for (uint32_t i = 0; i < p->steps.ptr[k].desc.n_inputs + p->steps.ptr[k].n_captured; i++) {
      if (p->steps.ptr[k].in[i] == HN_NO_SLOT) continue;
      const hn_slot *s = &p->slots.ptr[hn_slot_root(p, p->steps.ptr[k].in[i])];
      if (s->place == HN_PLACE_INPUT && s->input == input) return true;
    }
  return false;
}

hone_status hn_plan_find_over(hn_plan *p, hone_error *error) {
  if (!p->over && !(p->over = hn_arena_alloc(&p->arena, (p->n_outputs + 1) * sizeof *p->over)))
    return hn_fail_memory(error, p->n_outputs * sizeof *p->over, "a plan's outputs");
  for (uint32_t i = 0; i < p->slots.len; i++) p->slots.ptr[i].lent = false;
  bool any = false; /* few tactics can: other plans are not searched */
  for (size_t k = 0; k < p->steps.len && !any; k++)
    any = p->steps.ptr[k].tactic && p->steps.ptr[k].tactic->over;
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    const uint32_t root = p->over[i] = any ? find_over(p, i) : HN_NO_SLOT;
    if (root == HN_NO_SLOT || !p->lends) continue;
    hn_slot *from = &p->slots.ptr[root];
    if (from->place == HN_PLACE_STAGED && hn_plan_read_here(p, from->input)) continue;
    p->slots.ptr[hn_slot_root(p, p->output_slot[i])].lent = true;
    from->lent = from->place == HN_PLACE_STAGED;
  }
  return HONE_OK;
}
