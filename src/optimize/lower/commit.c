/* A draft becomes a step of the plan, with the reformats that its inputs need. */
#include "optimize/lower/emit.h"

#include "base/error.h"
#include "optimize/step/layout.h"

#include <string.h>

static hn_step *push_step(hn_lowering *l, const hn_draft *d, hone_error *error) {
  hn_plan *p = l->plan;
  hn_arena *a = &p->arena;
  hn_step s = {.desc = d->step};
  hone_step_tensor *in = hn_arena_memdup(a, d->in, d->step.n_inputs * sizeof *in);
  hone_step_tensor *out = hn_arena_memdup(a, d->out, d->step.n_outputs * sizeof *out);
  s.in = HN_NEW_ARRAY(a, uint32_t, d->step.n_inputs);
  s.out = HN_NEW_ARRAY(a, uint32_t, d->step.n_outputs);
  if (d->step.program) {
    hone_pw_program *prog = hn_arena_memdup(a, &d->program, sizeof d->program);
    s.desc.program = prog;
    if (!prog) in = NULL;
  }
  s.desc.input = in;
  s.desc.output = out;
  if (!in || !out || !s.in || !s.out || !hn_vec_push(&p->steps, s)) {
    hn_fail_memory(error, sizeof s, "a step");
    return NULL;
  }
  return &p->steps.ptr[p->steps.len - 1];
}

/* A step that brings slot `from` into slot `to`: another layout or storage type, or other memory. */
static hone_status rewrite(hn_lowering *l, uint32_t from, uint32_t to, hone_error *error) {
  hn_plan *p = l->plan;
  hn_draft d = {0};
  const hn_slot *f = &p->slots.ptr[from], *t = &p->slots.ptr[to];
  const bool copy = f->desc.device != t->desc.device;
  d.step = (hone_step){HONE_DESC_HEAD(hone_step),
                       .anchor = copy ? "Copy" : "Reformat",
                       .name = f->value ? f->value->name : "constant",
                       .n_inputs = 1,
                       .n_anchor_inputs = 1,
                       .n_outputs = 1};
  d.in[0].desc = f->desc;
  d.out[0].desc = t->desc;
  d.step.input = d.in;
  d.step.output = d.out;
  d.step.cost.bytes = hn_step_tensor_bytes(&d.in[0]) + hn_step_tensor_bytes(&d.out[0]);
  hn_refusals why = {.arena = &p->arena};
  hn_estimate estimate = {0};
  const bool host =
      p->backend->asynchronous && !t->desc.device && !copy; /* out of the heap: to a fixed place */
  /* the run finds a tactic when it knows the shape */
  const bool late = !copy && !host && !hone_desc_known(&f->desc);
  const hone_tactic_desc *tactic =
      copy || host || late ? NULL : hn_choose_tactic(p, &d.step, &estimate, &why);
  hone_status status = HONE_OK;
  if (!copy && !tactic && !late && t->desc.device)
    status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "nothing on device %s rewrites a %s tensor: %s",
                     p->backend->name, hone_dtype_name(f->desc.dtype),
                     why.list.len ? why.list.ptr[0].text : "no tactic");
  hn_step *s = status == HONE_OK ? push_step(l, &d, error) : NULL;
  if (s) {
    s->kind = copy ? HN_STEP_COPY : late ? HN_STEP_LATE : tactic ? HN_STEP_TACTIC : HN_STEP_REF;
    s->tactic = tactic;
    s->predicted_s = estimate.seconds;
    s->in[0] = from;
    s->out[0] = to;
    s->role = copy ? HONE_STEP_COPY : HONE_STEP_REFORMAT;
    s->refused = hn_refusals_take(&why, &s->n_refused);
    s->what = copy ? (t->desc.device ? "copy to the device" : "copy to the host")
              : t->desc.layout == HONE_LAYOUT_CHANNELS_LAST ? "reformat to channels-last"
                                                            : "reformat to row-major";
  } else if (status == HONE_OK)
    status = HONE_ERROR_MEMORY;
  hn_vec_free(&why.list);
  return status;
}

static hone_status forward(hn_lowering *l, const hn_value *v, hn_form have, hn_form form, hone_error *error) {
  uint32_t *s = hn_slots_of(l, v);
  hone_tensor_desc d = hn_laid_out(l->plan, &v->desc, form);
  const hone_tensor_desc *from = &l->plan->slots.ptr[s[have]].desc;
  if (hone_desc_known(&d) && from->dtype == d.dtype && from->device == d.device && hn_layout_free(&d) &&
      hn_layout_free(from)) {
    s[form] = hn_slot_alias(l->plan, s[have], &d, v);
    return s[form] == HN_NO_SLOT ? hn_fail_memory(error, sizeof d, "lowering") : HONE_OK;
  }
  uint32_t fresh = hn_slot_new(l->plan, &d, v, hone_desc_known(&d) ? HN_PLACE_ARENA : HN_PLACE_HEAP);
  if (fresh == HN_NO_SLOT) return hn_fail_memory(error, sizeof d, "lowering");
  hone_status status = rewrite(l, s[have], fresh, error);
  if (status == HONE_OK) s[form] = fresh;
  return status;
}

/* From the host's memory to the device's, row-major. What callers give is copied before the first step, all
 * of it together; a view of it is a view of the copy. */
static hone_status to_device(hn_lowering *l, const hn_value *v, hone_error *error) {
  hn_plan *p = l->plan;
  uint32_t *s = hn_slots_of(l, v), root = hn_slot_root(p, s[HN_HOST]);
  if (p->slots.ptr[root].place != HN_PLACE_INPUT) {
    if (hn_dtype_points(v->desc.dtype))
      return hn_fail(error, HONE_ERROR_INTERNAL, "'%s' cannot be copied to the device", v->name);
    if (p->slots.ptr[root].place == HN_PLACE_HEAP && hone_desc_known(&v->desc)) {
      hone_tensor_desc d = hn_laid_out(p, &v->desc, HN_HOST);
      const uint32_t fixed = hn_slot_new(l->plan, &d, v, HN_PLACE_ARENA);
      if (fixed == HN_NO_SLOT) return hn_fail_memory(error, sizeof d, "lowering");
      hone_status status = rewrite(l, s[HN_HOST], fixed, error);
      if (status != HONE_OK) return status;
      s[HN_HOST] = fixed;
    }
    return forward(l, v, HN_HOST, HN_ROW, error);
  }
  uint32_t *staged = &l->staged[p->slots.ptr[root].input];
  if (*staged == HN_NO_SLOT) {
    hone_tensor_desc d = hn_laid_out(p, &p->slots.ptr[root].desc, HN_ROW);
    *staged = hn_slot_new(l->plan, &d, p->slots.ptr[root].value, HN_PLACE_STAGED);
    if (*staged == HN_NO_SLOT) return hn_fail_memory(error, sizeof d, "lowering");
    p->slots.ptr[*staged].input = p->slots.ptr[root].input;
  }
  hone_tensor_desc d = hn_laid_out(p, &v->desc, HN_ROW);
  s[HN_ROW] = root == s[HN_HOST] ? *staged : hn_slot_alias(l->plan, *staged, &d, v);
  return s[HN_ROW] == HN_NO_SLOT ? hn_fail_memory(error, sizeof d, "lowering") : HONE_OK;
}

/* The slot that holds v in this form, made when needed. */
hone_status hn_slot_for(hn_lowering *l, const hn_value *v, hn_form form, uint32_t *out, hone_error *error) {
  static const hn_form near_row[] = {HN_ROW, HN_LAST, HN_ROW | HN_NARROW, HN_LAST | HN_NARROW};
  static const hn_form near_narrow[] = {HN_ROW | HN_NARROW, HN_LAST | HN_NARROW, HN_ROW, HN_LAST};
  if (v->constant && !v->producer) {
    *out = hn_lower_constant(l, v, form);
    return *out == HN_NO_SLOT ? hn_fail_memory(error, 0, "a constant") : HONE_OK;
  }
  uint32_t *s = hn_slots_of(l, v);
  if (!s) return hn_fail_memory(error, sizeof *s, "lowering");
  hone_status status = HONE_OK;
  if (s[form] == HN_NO_SLOT) {
    hn_form have = hn_form_at_hand(l, v, form & HN_NARROW ? near_narrow : near_row, 4);
    if (have == HN_FORMS && s[HN_HOST] != HN_NO_SLOT) {
      status = to_device(l, v, error);
      have = HN_ROW;
    }
    if (have == HN_FORMS)
      return hn_fail(error, HONE_ERROR_INTERNAL, "value '%s' is read before a step makes it", v->name);
    if (status == HONE_OK && form == HN_HOST && have != HN_ROW) {
      status = forward(l, v, have, HN_ROW, error);
      have = HN_ROW;
    }
    /* A processor changes type and layout one after the other. */
    if (status == HONE_OK && hn_home(l->plan) == HN_ROW && (have ^ form) == (HN_LAST | HN_NARROW)) {
      if (s[have ^ HN_NARROW] == HN_NO_SLOT) status = forward(l, v, have, have ^ HN_NARROW, error);
      have ^= HN_NARROW;
    }
    if (status == HONE_OK && s[form] == HN_NO_SLOT) status = forward(l, v, have, form, error);
  }
  *out = s[form];
  return status;
}

static const char *describe(hn_lowering *l, const hn_unit *u, uint32_t n_epi) {
  hn_str s = {0};
  for (uint32_t k = 0; k < u->n_parts; k++)
    hn_str_printf(&s, "%s%s", k ? " + " : "", describe(l, u->parts[k], u->parts[k]->n_absorbed));
  bool group = hn_is_program(u);
  uint32_t n = group ? u->n_absorbed : n_epi;
  if (!group && !u->n_parts) hn_str_puts(&s, u->anchor);
  for (uint32_t k = 0; k < n && s.len < 160; k++)
    hn_str_printf(&s, "%s%s", s.len ? " + " : "",
                  u->absorbed[k]->n_nodes > 1 ? u->absorbed[k]->anchor : u->absorbed[k]->node->op_type);
  if (group) hn_str_printf(&s, "%s%s", s.len ? " + " : "", u->anchor);
  const char *text = hn_arena_strdup(&l->plan->arena, s.ptr ? s.ptr : "");
  hn_str_free(&s);
  return text ? text : "";
}

/* All nodes of a unit with its first n_epi absorbed units; list NULL: only counts them. */
static uint32_t collect(const hn_unit *u, uint32_t n_epi, const hone_node **list) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < u->n_parts; k++)
    n += collect(u->parts[k], u->parts[k]->n_absorbed, list ? list + n : NULL);
  for (uint32_t k = 0; k < (u->n_parts ? 0 : u->n_nodes); k++, n++)
    if (list) list[n] = u->nodes[k];
  for (uint32_t k = 0; k < n_epi; k++)
    for (uint32_t j = 0; j < u->absorbed[k]->n_nodes; j++, n++)
      if (list) list[n] = u->absorbed[k]->nodes[j];
  return n;
}

/* Records which graph nodes (and so which nodes of the file) the step stands for. */
hone_status hn_step_own(hn_lowering *l, hn_step *s, const hn_unit *u, uint32_t n_epi, hone_error *error) {
  hn_arena *a = &l->plan->arena;
  uint32_t n = collect(u, n_epi, NULL), origins = 0;
  s->nodes = HN_NEW_ARRAY(a, const hone_node *, n);
  if (!s->nodes) return hn_fail_memory(error, n, "a step");
  s->n_nodes = collect(u, n_epi, s->nodes);
  for (uint32_t k = 0; k < n; k++) origins += s->nodes[k]->n_origin;
  uint32_t *o = HN_NEW_ARRAY(a, uint32_t, origins);
  if (!o) return hn_fail_memory(error, origins, "a step");
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t j = 0; j < s->nodes[k]->n_origin; j++) o[s->n_origin++] = s->nodes[k]->origin[j];
  s->origin = o;
  s->node = hn_is_program(u) && u->n_absorbed ? NULL : u->node;
  return HONE_OK;
}

hone_status hn_draft_commit(hn_lowering *l, const hn_unit *u, uint32_t n_epi, hn_draft *d, hn_step_kind kind,
                            const hone_tactic_desc *tactic, double predicted, hn_refusals *refused,
                            hone_error *error) {
  hn_plan *p = l->plan;
  uint32_t in_slot[HN_MAX_IN + HONE_MAX_EPILOGUE];
  for (uint32_t i = 0; i < d->step.n_inputs; i++) {
    in_slot[i] = d->in_slot[i];
    if (in_slot[i] != HN_NO_SLOT || !d->in_value[i]) continue;
    hone_status status = hn_slot_for(l, d->in_value[i], d->in_form[i], &in_slot[i], error);
    if (status != HONE_OK) return status;
    if (d->in_view[i]) {
      in_slot[i] =
          hn_slot_part(p, in_slot[i], &d->in_view[i]->desc, d->in_view[i]->offset, d->in_view[i]->base);
      if (in_slot[i] == HN_NO_SLOT) return hn_fail_memory(error, sizeof(hn_slot), "lowering");
    }
    d->in[i].desc = p->slots.ptr[in_slot[i]].desc;
  }
  hn_step *s = push_step(l, d, error);
  if (!s) return HONE_ERROR_MEMORY;
  s->kind = kind;
  s->tactic = tactic;
  s->predicted_s = predicted;
  hn_refusals all = {.arena = &p->arena};
  if (refused) hn_refuse_all(&all, refused->list.ptr, (uint32_t)refused->list.len);
  hn_refuse_all(&all, u->note, u->n_notes);
  s->refused = hn_refusals_take(&all, &s->n_refused);
  s->what = describe(l, u, n_epi);
  if (d->step.n_inputs) memcpy(s->in, in_slot, d->step.n_inputs * sizeof *in_slot);
  hone_status status = hn_step_own(l, s, u, n_epi, error);
  if (status != HONE_OK) return status;
  uint32_t at = (uint32_t)p->steps.len - 1;
  bool dynamic = kind == HN_STEP_CONTROL || (u->node->op && (u->node->op->flags & HONE_OP_DATA_DEPENDENT));
  for (uint32_t i = 0; i < d->step.n_outputs; i++) {
    p->steps.ptr[at].out[i] = HN_NO_SLOT;
    hn_value *v = d->out_value[i];
    if (!v) continue;
    bool heap = dynamic || !hone_desc_known(&v->desc) || hn_dtype_points(v->desc.dtype) ||
                v->desc.dtype == HONE_DTYPE_NONE;
    const hn_form form = u->out_view ? HN_ROW | (d->out_form[i] & HN_NARROW) : d->out_form[i];
    const hone_tensor_desc desc = u->out_view ? hn_laid_out(p, &v->desc, form) : d->out[i].desc;
    uint32_t slot = hn_slot_new(l->plan, &desc, v, heap ? HN_PLACE_HEAP : HN_PLACE_ARENA);
    uint32_t *of = hn_slots_of(l, v);
    if (slot == HN_NO_SLOT || !of) return hn_fail_memory(error, sizeof *of, "lowering");
    p->steps.ptr[at].out[i] = slot;
    of[form] = slot;
    /* Where the layout is not carried from step to step. */
    if (!hn_carries_layout(p) && form != HN_HOST && form & HN_LAST) {
      uint32_t row;
      status = hn_slot_for(l, v, form & ~(hn_form)HN_LAST, &row, error);
      if (status != HONE_OK) return status;
      of[form] = HN_NO_SLOT;
    }
  }
  if (!hn_carries_layout(p))
    for (uint32_t i = 0; i < d->step.n_inputs; i++)
      if (d->in_value[i] && !d->in_value[i]->constant) {
        uint32_t *of = hn_slots_of(l, d->in_value[i]);
        for (hn_form f = HN_ROW; f <= HN_NARROW; f += HN_NARROW)
          if (of[f] != HN_NO_SLOT) of[f | HN_LAST] = HN_NO_SLOT;
      }
  return HONE_OK;
}
