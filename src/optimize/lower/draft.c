/* Steps under construction: a unit with its epilogue as tactics see it. */
#include "optimize/lower/emit.h"

#include "model/ir/bytes.h"

#include <stddef.h>
#include <string.h>

hn_draft *hn_draft_scratch(hn_lowering *l) {
  if (!l->draft) l->draft = HN_NEW(l->temp, hn_draft);
  return l->draft;
}

static bool full_shape(const hone_tensor_desc *d, const hone_tensor_desc *out) {
  return hone_desc_same_dims(d, out);
}

/* A step that computes with what stays f32 reads that as it lies, and constants beside it. Products take
 * their own operands narrow all the same, on a processor neither. */
static bool reads_wide(const hn_lowering *l, const hn_draft *d, const hn_value *v) {
  const bool wide = hn_is_exact(l, v) || (v->constant && !v->producer);
  return wide && (d->careful || !l->plan->backend->asynchronous);
}

static bool add_input(hn_lowering *l, hn_draft *d, const hn_value *v, hn_form form) {
  uint32_t i = d->step.n_inputs;
  if (i == HN_MAX_IN + HONE_MAX_EPILOGUE) return false;
  d->step.n_inputs++;
  d->in_value[i] = v;
  d->in_slot[i] = HN_NO_SLOT;
  if (v && v->desc.dtype == HONE_DTYPE_F32 && form != HN_HOST && !reads_wide(l, d, v))
    form |= d->form & HN_NARROW;
  d->in_form[i] = form;
  d->in[i] = (hone_step_tensor){0};
  if (!v) return true;
  if (v->constant && !v->producer) {
    d->in_slot[i] = l->filed && i == HN_PRODUCT_WEIGHTS && hn_lower_is_filed(l, v)
                        ? hn_lower_filed(l, v)
                        : hn_lower_constant(l, v, l->narrow_constants ? form : form & ~(hn_form)HN_NARROW);
    if (d->in_slot[i] == HN_NO_SLOT) return false;
    const hn_slot *s = &l->plan->slots.ptr[d->in_slot[i]];
    d->in[i] = (hone_step_tensor){s->desc, s->constant};
    return true;
  }
  d->in[i].desc = hn_laid_out(l->plan, &v->desc, form);
  d->in[i].desc.quant = hn_quant_of(l->plan, v, &d->in[i].desc);
  return true;
}

/* Part of a value, as view says. */
static bool add_view(hn_lowering *l, hn_draft *d, const hn_strided *view) {
  uint32_t i = d->step.n_inputs;
  if (i == HN_MAX_IN + HONE_MAX_EPILOGUE) return false;
  d->step.n_inputs++;
  d->in_value[i] = view->base;
  d->in_view[i] = view;
  d->in_slot[i] = HN_NO_SLOT;
  const bool narrow = view->base->desc.dtype == HONE_DTYPE_F32 && !reads_wide(l, d, view->base);
  d->in_form[i] = HN_ROW | (narrow ? d->form & HN_NARROW : 0);
  d->in[i] = (hone_step_tensor){.desc = hn_stored(l->plan, &view->desc, d->in_form[i])};
  return true;
}

static bool add_vector(hn_lowering *l, hn_draft *d, const hn_value *c, int64_t channels, bool negate,
                       bool invert) {
  uint32_t i = d->step.n_inputs;
  if (i == HN_MAX_IN + HONE_MAX_EPILOGUE || c->constant->desc.dtype != HONE_DTYPE_F32) return false;
  float *v = HN_NEW_ARRAY(l->temp, float, channels);
  if (!v) return false;
  if (!hn_value_make_bytes(c)) return false;
  const char *data = c->constant->data; /* at any alignment */
  bool one = hone_desc_count(&c->constant->desc) == 1;
  for (int64_t k = 0; k < channels; k++) {
    memcpy(&v[k], data + (one ? 0 : k) * (int64_t)sizeof *v, sizeof *v);
    if (negate) v[k] = -v[k];
    if (invert) v[k] = 1.0f / v[k];
  }
  uint32_t slot = hn_slot_vector(l->plan, v, channels);
  if (slot == HN_NO_SLOT) return false;
  d->step.n_inputs++;
  d->in_value[i] = NULL;
  d->in_slot[i] = slot;
  d->in_form[i] = HN_ROW;
  d->in[i] = (hone_step_tensor){l->plan->slots.ptr[slot].desc, l->plan->slots.ptr[slot].constant};
  return true;
}

/* Does constant c broadcast to `out` with at most the channel dimension different from 1? */
static bool per_channel(const hn_value *c, const hone_tensor_desc *out, int32_t axis) {
  if (!c->constant || c->producer || c->constant->desc.dtype != HONE_DTYPE_F32) return false;
  const hone_tensor_desc *d = &c->constant->desc;
  if (hone_desc_count(d) == 1) return d->rank <= out->rank;
  if (d->rank > out->rank || hone_desc_count(d) != out->dim[axis]) return false;
  for (int32_t i = 0; i < d->rank; i++) {
    int32_t o = i + out->rank - d->rank;
    if (d->dim[i] != 1 && (o != axis || d->dim[i] != out->dim[axis])) return false;
  }
  return true;
}

/* Appends what unit u does to the value x to the epilogue; false when epilogues cannot say it. */
static bool add_epilogue(hn_lowering *l, hn_draft *d, const hn_unit *u, const hn_value *x, bool conv) {
  if (d->step.n_epilogue == HONE_MAX_EPILOGUE) return false;
  hone_epilogue *e = &d->step.epilogue[d->step.n_epilogue];
  const hone_tensor_desc *out = &u->out->desc;
  if (u->n_in == 1) {
    *e = (hone_epilogue){.kind = HONE_EPI_ACT, .act = u->op, .alpha = u->alpha, .beta = u->beta};
    d->step.n_epilogue++;
    return true;
  }
  if (out->rank < 1 || (conv && out->rank < 2)) return false;
  int32_t axis = conv ? 1 : out->rank - 1;
  bool left = u->in[0] == x;
  const hn_value *other = u->in[left ? 1 : 0];
  bool sub = u->op == HONE_PW_SUB, div = u->op == HONE_PW_DIV;
  if ((sub || div) && !left) return false;
  e->input = d->step.n_inputs;
  if (per_channel(other, out, axis)) {
    if (!add_vector(l, d, other, out->dim[axis], sub, div)) return false;
    e->kind = u->op == HONE_PW_ADD || sub ? HONE_EPI_BIAS : HONE_EPI_SCALE;
  } else {
    if (sub || div || other->desc.dtype != HONE_DTYPE_F32 || !full_shape(&other->desc, out)) return false;
    if (!add_input(l, d, other, d->form & ~(hn_form)HN_NARROW)) return false;
    e->kind = u->op == HONE_PW_ADD ? HONE_EPI_ADD : HONE_EPI_MUL;
  }
  d->step.n_epilogue++;
  return true;
}

static void cost_of(hn_lowering *l, const hn_unit *u, hone_cost *total) {
  *total = (hone_cost){0};
  for (uint32_t k = 0; k < u->n_nodes + u->n_absorbed; k++) {
    const hn_unit *part = k < u->n_nodes ? u : u->absorbed[k - u->n_nodes];
    for (uint32_t j = 0; j < (part == u ? 1 : part->n_nodes); j++) {
      const hone_node *n = part == u ? u->nodes[k] : part->nodes[j];
      const hone_tensor_desc *in[HN_MAX_IN];
      const hone_tensor *value[HN_MAX_IN];
      hone_tensor_desc *out[HN_UNIT_OPERANDS];
      if (!n->op || n->n_in > HN_MAX_IN || n->n_out > HN_UNIT_OPERANDS) continue;
      for (uint32_t i = 0; i < n->n_in; i++) {
        in[i] = n->in[i] ? &n->in[i]->desc : NULL;
        value[i] = n->in[i] ? n->in[i]->constant : NULL;
      }
      bool known = true;
      for (uint32_t i = 0; i < n->n_out; i++) {
        out[i] = n->out[i] ? &n->out[i]->desc : NULL;
        known = known && (!out[i] || hone_desc_known(out[i]));
      }
      hone_cost c = {.bytes = -1};
      if (n->op->cost && known)
        n->op->cost(&(hone_infer){n, n->n_in, n->n_out, in, value, out}, &c);
      else if (known && out[0] && !(n->op->flags & (HONE_OP_MOVE | HONE_OP_VIEW)))
        c.flops = (double)hone_desc_count(out[0]);
      total->flops += c.flops;
      total->macs += c.macs;
    }
  }
  (void)l;
}

double hn_step_tensor_bytes(const hone_step_tensor *t) {
  int64_t b = t->desc.dtype == HONE_DTYPE_NONE ? 0 : hone_desc_bytes(&t->desc);
  return b > 0 ? (double)b : 0;
}

bool hn_stays_f32(const hn_plan *p, const hone_node *node) {
  for (uint32_t i = 0; i < p->n_f32_nodes; i++)
    if (strcmp(p->f32_nodes[i], node->name) == 0) return true;
  return false;
}

static hone_math math_of(const hn_plan *p, const hone_node *node) {
  return p->math > HONE_MATH_F32 && hn_stays_f32(p, node) ? HONE_MATH_F32 : p->math;
}

/* Values of f32 are stored narrow, except around nodes that are to stay f32. */
static hn_form narrow_of(const hn_plan *p, const hone_node *node) {
  return p->storage == HONE_DTYPE_F32 || hn_stays_f32(p, node) ? 0 : HN_NARROW;
}

/* Input i of a part among the inputs of the whole; a value that several parts read stands there once. */
static bool share_input(hn_draft *whole, const hn_draft *part, uint32_t i, uint32_t *at) {
  for (uint32_t k = 0; k < whole->step.n_inputs; k++)
    if (part->in_value[i] && whole->in_value[k] == part->in_value[i] &&
        whole->in_form[k] == part->in_form[i]) {
      *at = k;
      return true;
    }
  uint32_t k = *at = whole->step.n_inputs;
  if (k == HN_MAX_IN + HONE_MAX_EPILOGUE) return false;
  whole->step.n_inputs++;
  whole->in[k] = part->in[i];
  whole->in_value[k] = part->in_value[i];
  whole->in_slot[k] = part->in_slot[i];
  whole->in_form[k] = part->in_form[i];
  return true;
}

bool hn_only_returned(const hn_value *v) { return v->is_output && !v->users.len; }

/* Is input i of part k what the part before gives? */
static bool is_chained(const hn_unit *u, uint32_t k, const hn_draft *part, uint32_t i) {
  return u->inner ? u->inner[k] && part->in_value[i] == u->inner[k] : k && i == 0;
}

/* Describes a chain: every part as its own step, and all together. Views between them are only names. */
static bool make_chain(hn_lowering *l, const hn_unit *u, hn_draft *d) {
  hn_arena *a = &l->plan->arena;
  if (!l->part) l->part = hn_arena_raw(l->temp, sizeof *l->part, HN_MEM_ALIGN);
  hn_draft *one = l->part;
  hone_step_part *part = HN_NEW_ARRAY(a, hone_step_part, u->n_parts);
  if (!one || !part) return false;
  for (uint32_t k = 0; k < u->n_parts; k++) {
    const hn_unit *unit = u->parts[k];
    if (unit->kind == HN_UNIT_VIEW) continue;
    const bool last = hn_is_program(unit) || hn_anchor_named(unit->anchor, unit->node).layouts;
    if (!hn_draft_make(l, unit, unit->n_absorbed, last ? HN_LAST : HN_ROW, one)) return false;
    uint32_t *input = HN_NEW_ARRAY(a, uint32_t, one->step.n_inputs);
    hone_step *step = hn_arena_memdup(a, &one->step, sizeof *step);
    if (!input || !step) return false;
    for (uint32_t i = 0; i < one->step.n_inputs; i++)
      if (is_chained(u, k, one, i))
        input[i] = HONE_PART_CHAINED;
      else if (!share_input(d, one, i, &input[i]))
        return false;
    step->input = hn_arena_memdup(a, one->in, one->step.n_inputs * sizeof *one->in);
    step->output = hn_arena_memdup(a, one->out, one->step.n_outputs * sizeof *one->out);
    if (one->step.program) step->program = hn_arena_memdup(a, &one->program, sizeof one->program);
    if (!step->input || !step->output || (one->step.program && !step->program)) return false;
    part[d->step.n_parts++] = (hone_step_part){step, input};
    d->step.cost.flops += step->cost.flops;
    d->step.cost.macs += step->cost.macs;
    if (step->math < d->step.math) d->step.math = step->math;
  }
  d->step.part = part;
  d->step.n_anchor_inputs = d->step.n_inputs;
  d->step.n_outputs = 1;
  d->out_value[0] = one->out_value[0];
  d->out_form[0] = one->out_form[0];
  d->out[0] = one->out[0];
  d->step.input = d->in;
  d->step.output = d->out;
  for (uint32_t i = 0; i < d->step.n_inputs; i++) d->step.cost.bytes += hn_step_tensor_bytes(&d->in[i]);
  d->step.cost.bytes += hn_step_tensor_bytes(&d->out[0]);
  return true;
}

/* Describes unit u with its first n_epi absorbed units as epilogue (pointwise roots: the whole group). False:
 * not expressible in this form. */
bool hn_draft_make(hn_lowering *l, const hn_unit *u, uint32_t n_epi, hn_form form, hn_draft *d) {
  /* All but the inputs, three quarters of it: who adds one fills it. */
  memset((char *)d + offsetof(hn_draft, out), 0, sizeof *d - offsetof(hn_draft, out));
  const hn_anchor anchor = hn_anchor_named(hn_is_program(u) ? "Pointwise" : u->anchor, u->node);
  if (form == HN_LAST && !anchor.layouts) return false;
  d->form = form | (form == HN_HOST || l->all_wide ? 0 : narrow_of(l->plan, u->node));
  d->careful = !hn_fusable_anchor(u) && hn_touches_exact(l, u, n_epi);
  d->step = (hone_step){HONE_DESC_HEAD(hone_step), .anchor = u->anchor, .name = u->node->name,
                        .node = u->node, .math = math_of(l->plan, u->node)};
  if (u->kind == HN_UNIT_CHAIN) return form == HN_LAST && make_chain(l, u, d);
  hn_value *last = u->out;
  if (hn_is_program(u)) {
    hn_unit *group[64];
    hn_value *in[HN_UNIT_OPERANDS];
    uint32_t n = 0, n_in;
    for (uint32_t k = 0; k < u->n_absorbed; k++) {
      uint32_t at = n++;
      while (at > 0 && group[at - 1]->order > u->absorbed[k]->order) {
        group[at] = group[at - 1];
        at--;
      }
      group[at] = u->absorbed[k];
    }
    group[n++] = (hn_unit *)u;
    if (!hn_pointwise_program(l, group, n, in, &n_in, HN_UNIT_OPERANDS, &d->program)) return false;
    d->step.anchor = "Pointwise";
    d->step.program = &d->program;
    for (uint32_t i = 0; i < n_in; i++)
      if (!add_input(l, d, in[i], full_shape(&in[i]->desc, &u->out->desc) ? form : HN_ROW)) return false;
    d->step.n_anchor_inputs = n_in;
  } else {
    if (u->n_in > HN_MAX_IN) return false;
    int32_t rank = u->out ? u->out->desc.rank : 0;
    for (uint32_t i = 0; i < u->n_in; i++) {
      const hn_value *v = u->in[i];
      if (u->view && u->view[i].base) {
        if (!add_view(l, d, &u->view[i])) return false;
        continue;
      }
      bool follow = form == HN_LAST && v && (v->desc.rank == rank || (i == 0 && hn_drops_dims(u))) &&
                    (i == 0 || anchor.layouts & HONE_LAST_ALL || anchor.like_output >> i & 1) &&
                    hone_desc_known(&v->desc);
      if (!add_input(l, d, v, follow ? HN_LAST : form == HN_HOST ? HN_HOST : HN_ROW)) return false;
    }
    d->step.n_anchor_inputs = u->n_in;
    const hn_value *x = anchor.to_codes ? u->node->out[0] : u->out;
    for (uint32_t k = 0; k < n_epi; k++) {
      if (!add_epilogue(l, d, u->absorbed[k], x, anchor.channels)) return false;
      x = u->absorbed[k]->out;
      if (!anchor.to_codes) last = u->absorbed[k]->out;
    }
  }
  uint32_t n_out = u->kind == HN_UNIT_NODE ? u->node->n_out : 1;
  if (n_out > HN_UNIT_OPERANDS) return false;
  d->step.n_outputs = n_out;
  for (uint32_t i = 0; i < n_out; i++) {
    d->out_value[i] = i == 0 ? last : u->node->out[i];
    if (!d->out_value[i]) continue;
    const hone_tensor_desc *desc = &d->out_value[i]->desc;
    d->out_form[i] = form == HN_LAST && desc->rank < 3 ? HN_ROW : form;
    const bool wide = l->wide && i == 0 && hn_only_returned(d->out_value[i]);
    if (desc->dtype == HONE_DTYPE_F32 && !wide && !hn_is_exact(l, d->out_value[i]))
      d->out_form[i] |= d->form & HN_NARROW;
    d->out[i].desc = hn_laid_out(l->plan, desc, d->out_form[i]);
    d->out[i].desc.quant = hn_quant_of(l->plan, d->out_value[i], &d->out[i].desc);
  }
  if (u->out_view) d->out[0].desc = hn_stored(l->plan, u->out_view, d->out_form[0]);
  d->step.input = d->in;
  d->step.output = d->out;
  cost_of(l, u, &d->step.cost);
  double bytes = 0;
  for (uint32_t i = 0; i < d->step.n_inputs; i++) bytes += hn_step_tensor_bytes(&d->in[i]);
  for (uint32_t i = 0; i < n_out; i++) bytes += hn_step_tensor_bytes(&d->out[i]);
  d->step.cost.bytes = bytes;
  return true;
}

bool hn_draft_known(const hn_draft *d) {
  for (uint32_t i = 0; i < d->step.n_outputs; i++)
    if (d->out_value[i] && !hone_desc_known(&d->out_value[i]->desc)) return false;
  for (uint32_t i = 0; i < d->step.n_inputs; i++)
    if (d->in_value[i] && !hone_desc_known(&d->in_value[i]->desc)) return false;
  return true;
}
