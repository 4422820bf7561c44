/* Images without padding. On an accelerator pixels of channels-last tensors begin at multiples of 16 bytes,
 * so that an image of three channels is mostly zeros. Where one is reformatted or quantised as it arrives,
 * and all who read it can take pixels of four channels, it has no more: half the bytes are written, and read.
 *
 * A QuantizeLinear whose codes nobody but a reformat reads makes pixels at once, where a tactic does that in
 * less time than both take. */
#include "optimize/plan/plan.h"

#include "optimize/step/choose.h"

#include <string.h>

enum { CHANNELS = 4, MOST_READERS = 8 };

/* A step as it would be. */
typedef struct change {
  hn_step *step;
  hone_step desc;
  const hone_tactic_desc *tactic;
  double predicted;
  const hone_refusal *refused;
  uint32_t n_refused;
} change;

/* Memory of its own, which no other name shares. */
static bool alone(const hn_plan *p, uint32_t slot) {
  const hn_slot *s = &p->slots.ptr[slot];
  if (s->place != HN_PLACE_ARENA || s->alias != HN_NO_SLOT) return false;
  for (size_t i = 0; i < p->slots.len; i++)
    if (p->slots.ptr[i].alias == slot) return false;
  for (uint32_t i = 0; i < p->n_outputs; i++)
    if (p->output_slot[i] == slot) return false;
  return true;
}

static bool reads(const hn_step *s, uint32_t slot, bool *captured) {
  bool found = false;
  for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++) {
    if (s->in[i] != slot) continue;
    found = true;
    if (i >= s->desc.n_inputs) *captured = true;
  }
  return found;
}

/* The step with another description of the slot. */
static bool change_step(hn_plan *p, hn_step *s, uint32_t slot, const hone_tensor_desc *as, change *c) {
  hone_step_tensor *in = hn_arena_memdup(&p->arena, s->desc.input, s->desc.n_inputs * sizeof *in),
                   *out = hn_arena_memdup(&p->arena, s->desc.output, s->desc.n_outputs * sizeof *out);
  hn_estimate estimate;
  if (!in || !out || s->kind != HN_STEP_TACTIC || s->desc.n_parts) return false;
  *c = (change){.step = s, .desc = s->desc};
  for (uint32_t i = 0; i < s->desc.n_inputs; i++)
    if (s->in[i] == slot) {
      c->desc.cost.bytes -= (double)(hone_desc_bytes(&in[i].desc) - hone_desc_bytes(as));
      in[i].desc = *as;
    }
  for (uint32_t i = 0; i < s->desc.n_outputs; i++)
    if (s->out[i] == slot) {
      c->desc.cost.bytes -= (double)(hone_desc_bytes(&out[i].desc) - hone_desc_bytes(as));
      out[i].desc = *as;
    }
  c->desc.input = in, c->desc.output = out;
  hn_refusals why = {.arena = &p->arena};
  c->tactic = hn_choose_tactic(p, &c->desc, &estimate, &why);
  c->predicted = estimate.seconds;
  c->refused = hn_refusals_take(&why, &c->n_refused);
  return c->tactic != NULL;
}

static bool is_step(const hn_step *s, const char *anchor) {
  return s->kind == HN_STEP_TACTIC && strcmp(s->desc.anchor, anchor) == 0;
}

static void settle(const change *c) {
  c->step->desc = c->desc;
  c->step->tactic = c->tactic;
  c->step->predicted_s = c->predicted;
  c->step->refused = c->refused, c->step->n_refused = c->n_refused;
}

/* The only step that makes the slot and the only one that reads it: those are `maker` and step k. */
static bool between(const hn_plan *p, uint32_t slot, size_t k, size_t *maker) {
  size_t makers = 0;
  if (slot == HN_NO_SLOT || !alone(p, slot)) return false;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hn_step *s = &p->steps.ptr[i];
    bool captured = false;
    if (reads(s, slot, &captured) && (i != k || captured)) return false;
    for (uint32_t o = 0; o < s->desc.n_outputs; o++)
      if (s->out[o] == slot) makers++, *maker = i;
  }
  return makers == 1 && *maker < k;
}

/* Whether step k, a reformat, is gone. */
static bool quantise_at_once(hn_plan *p, size_t k) {
  const hn_step *move = &p->steps.ptr[k];
  size_t at = 0;
  change c;
  if (!is_step(move, "Reformat") || move->desc.n_outputs != 1 || move->out[0] == HN_NO_SLOT ||
      !between(p, move->in[0], k, &at))
    return false;
  hn_step *maker = &p->steps.ptr[at];
  const hone_tensor_desc *as = &p->slots.ptr[move->out[0]].desc;
  if (!is_step(maker, "QuantizeLinear") || maker->desc.n_outputs != 1 || !hone_desc_known(as) ||
      as->dtype != maker->desc.output[0].desc.dtype || !change_step(p, maker, maker->out[0], as, &c) ||
      c.predicted >= maker->predicted_s + move->predicted_s)
    return false;
  settle(&c);
  maker->out[0] = move->out[0];
  memmove(&p->steps.ptr[k], &p->steps.ptr[k + 1], (--p->steps.len - k) * sizeof *p->steps.ptr);
  return true;
}

static void narrow(hn_plan *p, size_t k) {
  hn_step *maker = &p->steps.ptr[k];
  if ((!is_step(maker, "Reformat") && !is_step(maker, "QuantizeLinear")) || maker->desc.n_outputs != 1 ||
      maker->out[0] == HN_NO_SLOT || !alone(p, maker->out[0]))
    return;
  const uint32_t slot = maker->out[0];
  hone_tensor_desc d = p->slots.ptr[slot].desc;
  if (!hone_desc_known(&d) || d.layout != HONE_LAYOUT_CHANNELS_LAST || d.dim[1] > CHANNELS ||
      d.channel_pitch <= CHANNELS || hone_dtype_size(d.dtype) > 2)
    return;
  hone_desc_set_layout(&d, HONE_LAYOUT_CHANNELS_LAST, CHANNELS);
  change list[MOST_READERS + 1];
  uint32_t n = 0;
  double before = 0, after = 0;
  for (size_t i = k; i < p->steps.len; i++) {
    bool captured = false;
    hn_step *s = &p->steps.ptr[i];
    if (i != k && !reads(s, slot, &captured)) continue;
    if (captured || n > MOST_READERS || !change_step(p, s, slot, &d, &list[n])) return;
    before += s->predicted_s, after += list[n++].predicted;
  }
  if (n < 2 || after >= before) return;
  for (uint32_t i = 0; i < n; i++) settle(&list[i]);
  p->slots.ptr[slot].desc = d;
  p->slots.ptr[slot].bytes = (uint64_t)hone_desc_bytes(&d);
}

void hn_plan_narrow_images(hn_plan *p) {
  if (!p->backend->asynchronous || p->level < 2 || p->reference) return;
  for (size_t k = 0; k < p->steps.len;)
    if (!quantise_at_once(p, k)) k++;
  for (size_t k = 0; k < p->steps.len; k++) narrow(p, k);
}
