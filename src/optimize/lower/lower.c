/* Emits the steps. See lower.h for the parts. */
#include "optimize/lower/lower.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW HONE_LAYOUT_ROW_MAJOR
#define LAST HONE_LAYOUT_CHANNELS_LAST
enum { MAX_IN = 24 };

/* ------------------------------------------------------------------ slots */

static uint32_t new_slot(hn_lowering *l, const hone_tensor_desc *desc, const hn_value *value,
                         hn_place place) {
  hn_plan *p = l->plan;
  int64_t bytes = hone_desc_known(desc) ? hone_desc_bytes(desc) : 0;
  hn_slot s = {.desc = *desc,
               .value = value,
               .place = place,
               .alias = HN_NO_SLOT,
               .bytes = bytes > 0 ? (uint64_t)bytes : 0};
  return hn_vec_push(&p->slots, s) ? (uint32_t)p->slots.len - 1 : HN_NO_SLOT;
}

static uint32_t alias_slot(hn_lowering *l, uint32_t of, const hone_tensor_desc *desc, const hn_value *value) {
  uint32_t s = new_slot(l, desc, value, l->plan->slots.ptr[of].place);
  if (s == HN_NO_SLOT) return s;
  hn_slot *a = &l->plan->slots.ptr[s], *o = &l->plan->slots.ptr[of];
  a->alias = of;
  a->constant = o->constant;
  a->input = o->input;
  return s;
}

static uint32_t *slots_of(hn_lowering *l, const hn_value *v) {
  uint32_t **at = &l->slot_of[v->id];
  if (!*at) {
    *at = HN_NEW_ARRAY(l->temp, uint32_t, 2);
    if (*at) (*at)[ROW] = (*at)[LAST] = HN_NO_SLOT;
  }
  return *at;
}

static hone_tensor_desc laid_out(const hone_tensor_desc *d, hone_layout layout) {
  hone_tensor_desc r = *d;
  if (hone_desc_known(d)) hone_desc_set_layout(&r, layout, 0);
  return r;
}

/* Bytes of a constant in another layout, made once at plan time. */
static const void *permuted(hn_lowering *l, const hone_tensor *t, const hone_tensor_desc *to) {
  int64_t n = hone_desc_count(&t->desc);
  size_t size = hone_dtype_size(t->desc.dtype);
  char *out = hn_arena_aligned(&l->plan->arena, (size_t)hone_desc_bytes(to), HN_MEM_ALIGN);
  if (!out) return NULL;
  int64_t index[HONE_MAX_RANK] = {0}, at = 0;
  for (int64_t i = 0; i < n; i++) {
    memcpy(out + (size_t)at * size, (const char *)t->data + (size_t)i * size, size);
    for (int32_t d = to->rank - 1; d >= 0; d--) {
      at += to->stride[d];
      if (++index[d] < to->dim[d]) break;
      at -= to->stride[d] * to->dim[d];
      index[d] = 0;
    }
  }
  l->plan->constant_bytes += (uint64_t)n * size;
  return out;
}

uint32_t hn_lower_constant(hn_lowering *l, const hn_value *v, hone_layout layout) {
  uint32_t *s = slots_of(l, v);
  if (!s) return HN_NO_SLOT;
  if (s[layout] != HN_NO_SLOT) return s[layout];
  hone_tensor_desc d = laid_out(&v->constant->desc, layout);
  uint32_t slot = new_slot(l, &d, v, HN_PLACE_CONST);
  if (slot == HN_NO_SLOT) return slot;
  const void *data = layout == ROW || hn_layout_free(&d) ? v->constant->data : permuted(l, v->constant, &d);
  if (!data) return HN_NO_SLOT;
  l->plan->slots.ptr[slot].constant = data;
  return s[layout] = slot;
}

/* A vector of `n` floats in the plan. */
static uint32_t vector_slot(hn_lowering *l, const float *data, int64_t n) {
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  float *copy = hn_arena_aligned(&l->plan->arena, (size_t)n * sizeof *copy, HN_MEM_ALIGN);
  uint32_t slot = copy ? new_slot(l, &d, NULL, HN_PLACE_CONST) : HN_NO_SLOT;
  if (slot == HN_NO_SLOT) return slot;
  memcpy(copy, data, (size_t)n * sizeof *copy);
  l->plan->slots.ptr[slot].constant = copy;
  return slot;
}

/* ------------------------------------------------------------------ steps under construction */

typedef struct draft {
  hone_step step;
  hone_step_tensor in[MAX_IN + HONE_MAX_EPILOGUE];
  hone_step_tensor out[HN_UNIT_OPERANDS];
  const hn_value *in_value[MAX_IN + HONE_MAX_EPILOGUE]; /* NULL: left out, or a vector */
  uint32_t in_slot[MAX_IN + HONE_MAX_EPILOGUE]; /* vectors and constants: their slot; else HN_NO_SLOT */
  hone_layout in_layout[MAX_IN + HONE_MAX_EPILOGUE];
  hn_value *out_value[HN_UNIT_OPERANDS];
  hone_layout out_layout;
  hone_pw_program program;
} draft;

static bool full_shape(const hone_tensor_desc *d, const hone_tensor_desc *out) {
  return hone_desc_same_dims(d, out);
}

static bool add_input(hn_lowering *l, draft *d, const hn_value *v, hone_layout layout) {
  uint32_t i = d->step.n_inputs;
  if (i == MAX_IN + HONE_MAX_EPILOGUE) return false;
  d->step.n_inputs++;
  d->in_value[i] = v;
  d->in_slot[i] = HN_NO_SLOT;
  d->in_layout[i] = layout;
  d->in[i] = (hone_step_tensor){0};
  if (!v) return true;
  if (v->constant && !v->producer) {
    d->in_slot[i] = hn_lower_constant(l, v, layout);
    if (d->in_slot[i] == HN_NO_SLOT) return false;
    const hn_slot *s = &l->plan->slots.ptr[d->in_slot[i]];
    d->in[i] = (hone_step_tensor){s->desc, s->constant};
    return true;
  }
  d->in[i].desc = laid_out(&v->desc, layout);
  return true;
}

static bool add_vector(hn_lowering *l, draft *d, const hn_value *c, int64_t channels, bool negate,
                       bool invert) {
  uint32_t i = d->step.n_inputs;
  if (i == MAX_IN + HONE_MAX_EPILOGUE || c->constant->desc.dtype != HONE_DTYPE_F32) return false;
  float *v = HN_NEW_ARRAY(l->temp, float, channels);
  if (!v) return false;
  const float *data = c->constant->data;
  bool one = hone_desc_count(&c->constant->desc) == 1;
  for (int64_t k = 0; k < channels; k++) {
    v[k] = data[one ? 0 : k];
    if (negate) v[k] = -v[k];
    if (invert) v[k] = 1.0f / v[k];
  }
  uint32_t slot = vector_slot(l, v, channels);
  if (slot == HN_NO_SLOT) return false;
  d->step.n_inputs++;
  d->in_value[i] = NULL;
  d->in_slot[i] = slot;
  d->in_layout[i] = ROW;
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
static bool add_epilogue(hn_lowering *l, draft *d, const hn_unit *u, const hn_value *x, bool conv) {
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
    if (!add_input(l, d, other, d->out_layout)) return false;
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
      const hone_tensor_desc *in[MAX_IN];
      const hone_tensor *value[MAX_IN];
      hone_tensor_desc *out[HN_UNIT_OPERANDS];
      if (!n->op || n->n_in > MAX_IN || n->n_out > HN_UNIT_OPERANDS) continue;
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

static double tensor_bytes(const hone_step_tensor *t) {
  int64_t b = t->desc.dtype == HONE_DTYPE_NONE ? 0 : hone_desc_bytes(&t->desc);
  return b > 0 ? (double)b : 0;
}

/* Describes unit u with its first n_epi absorbed units as epilogue (pointwise roots: the whole group). False:
 * not expressible in this layout. */
static bool make_draft(hn_lowering *l, const hn_unit *u, uint32_t n_epi, hone_layout layout, draft *d) {
  memset(d, 0, sizeof *d);
  const hn_layout_rule *rule = hn_layout_rule_of(u->kind == HN_UNIT_POINTWISE ? "Pointwise" : u->anchor);
  if (layout == LAST && !rule) return false;
  d->out_layout = layout;
  d->step =
      (hone_step){HONE_DESC_HEAD(hone_step), .anchor = u->anchor, .name = u->node->name, .node = u->node};
  hn_value *last = u->out;
  if (u->kind == HN_UNIT_POINTWISE) {
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
      if (!add_input(l, d, in[i], full_shape(&in[i]->desc, &u->out->desc) ? layout : ROW)) return false;
    d->step.n_anchor_inputs = n_in;
  } else {
    if (u->n_in > MAX_IN) return false;
    int32_t rank = u->out ? u->out->desc.rank : 0;
    for (uint32_t i = 0; i < u->n_in; i++) {
      const hn_value *v = u->in[i];
      bool follow = layout == LAST && v && v->desc.rank == rank && (i == 0 || !rule->first_only) &&
                    hone_desc_known(&v->desc);
      if (!add_input(l, d, v, follow ? LAST : ROW)) return false;
    }
    d->step.n_anchor_inputs = u->n_in;
    bool conv = strncmp(u->anchor, "Conv", 4) == 0;
    const hn_value *x = u->out;
    for (uint32_t k = 0; k < n_epi; k++) {
      if (!add_epilogue(l, d, u->absorbed[k], x, conv)) return false;
      x = last = u->absorbed[k]->out;
    }
  }
  uint32_t n_out = u->kind == HN_UNIT_NODE ? u->node->n_out : 1;
  if (n_out > HN_UNIT_OPERANDS) return false;
  d->step.n_outputs = n_out;
  for (uint32_t i = 0; i < n_out; i++) {
    d->out_value[i] = i == 0 ? last : u->node->out[i];
    if (!d->out_value[i]) continue;
    d->out[i].desc = laid_out(&d->out_value[i]->desc, d->out_value[i]->desc.rank >= 3 ? layout : ROW);
  }
  d->step.input = d->in;
  d->step.output = d->out;
  cost_of(l, u, &d->step.cost);
  double bytes = 0;
  for (uint32_t i = 0; i < d->step.n_inputs; i++) bytes += tensor_bytes(&d->in[i]);
  for (uint32_t i = 0; i < n_out; i++) bytes += tensor_bytes(&d->out[i]);
  d->step.cost.bytes = bytes;
  return true;
}

static bool outputs_known(const draft *d) {
  for (uint32_t i = 0; i < d->step.n_outputs; i++)
    if (d->out_value[i] && !hone_desc_known(&d->out_value[i]->desc)) return false;
  for (uint32_t i = 0; i < d->step.n_inputs; i++)
    if (d->in_value[i] && !hone_desc_known(&d->in_value[i]->desc)) return false;
  return true;
}

/* ------------------------------------------------------------------ committing */

static hn_step *push_step(hn_lowering *l, const draft *d, hone_error *error) {
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

/* A step that rewrites slot `from` into slot `to` (another layout). */
static hone_status reformat(hn_lowering *l, uint32_t from, uint32_t to, hone_error *error) {
  hn_plan *p = l->plan;
  draft d = {0};
  const hn_slot *f = &p->slots.ptr[from], *t = &p->slots.ptr[to];
  d.step = (hone_step){HONE_DESC_HEAD(hone_step),
                       .anchor = "Reformat",
                       .name = f->value ? f->value->name : "constant",
                       .n_inputs = 1,
                       .n_anchor_inputs = 1,
                       .n_outputs = 1};
  d.in[0].desc = f->desc;
  d.out[0].desc = t->desc;
  d.step.input = d.in;
  d.step.output = d.out;
  d.step.cost.bytes = tensor_bytes(&d.in[0]) + tensor_bytes(&d.out[0]);
  hn_str why = {0};
  double predicted = 0;
  const hone_tactic_desc *tactic = hn_choose_tactic(p, &d.step, &predicted, &why);
  hn_step *s = push_step(l, &d, error);
  if (s) {
    s->kind = tactic ? HN_STEP_TACTIC : HN_STEP_REF;
    s->tactic = tactic;
    s->predicted_s = predicted;
    s->in[0] = from;
    s->out[0] = to;
    s->refused = why.ptr ? hn_arena_strdup(&p->arena, why.ptr) : "";
    s->what = t->desc.layout == LAST ? "reformat to channels-last" : "reformat to row-major";
  }
  hn_str_free(&why);
  return s ? HONE_OK : HONE_ERROR_MEMORY;
}

/* The slot that holds v in this layout, made when needed. */
static hone_status slot_for(hn_lowering *l, const hn_value *v, hone_layout layout, uint32_t *out,
                            hone_error *error) {
  if (v->constant && !v->producer) {
    *out = hn_lower_constant(l, v, layout);
    return *out == HN_NO_SLOT ? hn_fail_memory(error, 0, "a constant") : HONE_OK;
  }
  uint32_t *s = slots_of(l, v);
  if (!s) return hn_fail_memory(error, sizeof *s, "lowering");
  if (s[layout] == HN_NO_SLOT) {
    uint32_t have = s[layout == ROW ? LAST : ROW];
    if (have == HN_NO_SLOT)
      return hn_fail(error, HONE_ERROR_INTERNAL, "value '%s' is read before a step makes it", v->name);
    hone_tensor_desc d = laid_out(&v->desc, layout);
    if (hn_layout_free(&d)) {
      s[layout] = alias_slot(l, have, &d, v);
      if (s[layout] == HN_NO_SLOT) return hn_fail_memory(error, sizeof d, "lowering");
    } else {
      uint32_t fresh = new_slot(l, &d, v, HN_PLACE_ARENA);
      if (fresh == HN_NO_SLOT) return hn_fail_memory(error, sizeof d, "lowering");
      hone_status status = reformat(l, have, fresh, error);
      if (status != HONE_OK) return status;
      s[layout] = fresh;
    }
  }
  *out = s[layout];
  return HONE_OK;
}

static const char *describe(hn_lowering *l, const hn_unit *u, uint32_t n_epi) {
  hn_str s = {0};
  bool group = u->kind == HN_UNIT_POINTWISE;
  uint32_t n = group ? u->n_absorbed : n_epi;
  if (!group) hn_str_puts(&s, u->anchor);
  for (uint32_t k = 0; k < n && s.len < 160; k++)
    hn_str_printf(&s, "%s%s", s.len ? " + " : "",
                  u->absorbed[k]->n_nodes > 1 ? u->absorbed[k]->anchor : u->absorbed[k]->node->op_type);
  if (group) hn_str_printf(&s, "%s%s", s.len ? " + " : "", u->anchor);
  const char *text = hn_arena_strdup(&l->plan->arena, s.ptr ? s.ptr : "");
  hn_str_free(&s);
  return text ? text : "";
}

/* Records which graph nodes (and so which nodes of the file) the step stands for. */
static hone_status own_nodes(hn_lowering *l, hn_step *s, const hn_unit *u, uint32_t n_epi,
                             hone_error *error) {
  hn_arena *a = &l->plan->arena;
  uint32_t n = u->n_nodes, origins = 0;
  for (uint32_t k = 0; k < n_epi; k++) n += u->absorbed[k]->n_nodes;
  s->nodes = HN_NEW_ARRAY(a, const hone_node *, n);
  if (!s->nodes) return hn_fail_memory(error, n, "a step");
  for (uint32_t k = 0; k < u->n_nodes; k++) s->nodes[s->n_nodes++] = u->nodes[k];
  for (uint32_t k = 0; k < n_epi; k++)
    for (uint32_t j = 0; j < u->absorbed[k]->n_nodes; j++) s->nodes[s->n_nodes++] = u->absorbed[k]->nodes[j];
  for (uint32_t k = 0; k < n; k++) origins += s->nodes[k]->n_origin;
  uint32_t *o = HN_NEW_ARRAY(a, uint32_t, origins);
  if (!o) return hn_fail_memory(error, origins, "a step");
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t j = 0; j < s->nodes[k]->n_origin; j++) o[s->n_origin++] = s->nodes[k]->origin[j];
  s->origin = o;
  s->node = u->kind == HN_UNIT_POINTWISE && u->n_absorbed ? NULL : u->node;
  return HONE_OK;
}

static hone_status commit(hn_lowering *l, const hn_unit *u, uint32_t n_epi, draft *d, hn_step_kind kind,
                          const hone_tactic_desc *tactic, double predicted, const char *refused,
                          hone_error *error) {
  hn_plan *p = l->plan;
  uint32_t in_slot[MAX_IN + HONE_MAX_EPILOGUE];
  for (uint32_t i = 0; i < d->step.n_inputs; i++) {
    in_slot[i] = d->in_slot[i];
    if (in_slot[i] != HN_NO_SLOT || !d->in_value[i]) continue;
    hone_status status = slot_for(l, d->in_value[i], d->in_layout[i], &in_slot[i], error);
    if (status != HONE_OK) return status;
    d->in[i].desc = p->slots.ptr[in_slot[i]].desc;
  }
  hn_step *s = push_step(l, d, error);
  if (!s) return HONE_ERROR_MEMORY;
  s->kind = kind;
  s->tactic = tactic;
  s->predicted_s = predicted;
  s->refused = refused ? hn_arena_strdup(&p->arena, refused) : "";
  s->what = describe(l, u, n_epi);
  if (d->step.n_inputs) memcpy(s->in, in_slot, d->step.n_inputs * sizeof *in_slot);
  hone_status status = own_nodes(l, s, u, n_epi, error);
  if (status != HONE_OK) return status;
  uint32_t at = (uint32_t)p->steps.len - 1;
  bool dynamic = kind == HN_STEP_CONTROL || (u->node->op && (u->node->op->flags & HONE_OP_DATA_DEPENDENT));
  for (uint32_t i = 0; i < d->step.n_outputs; i++) {
    p->steps.ptr[at].out[i] = HN_NO_SLOT;
    hn_value *v = d->out_value[i];
    if (!v) continue;
    bool heap = dynamic || !hone_desc_known(&v->desc) || v->desc.dtype == HONE_DTYPE_STRING ||
                v->desc.dtype == HONE_DTYPE_NONE;
    uint32_t slot = new_slot(l, &d->out[i].desc, v, heap ? HN_PLACE_HEAP : HN_PLACE_ARENA);
    uint32_t *of = slots_of(l, v);
    if (slot == HN_NO_SLOT || !of) return hn_fail_memory(error, sizeof *of, "lowering");
    p->steps.ptr[at].out[i] = slot;
    of[d->out[i].desc.layout == LAST ? LAST : ROW] = slot;
    /* Below level 2 the layout is not carried from step to step: every step takes and gives row-major. */
    if (p->level < 2 && d->out[i].desc.layout == LAST) {
      uint32_t row;
      status = slot_for(l, v, ROW, &row, error);
      if (status != HONE_OK) return status;
      of[LAST] = HN_NO_SLOT;
    }
  }
  if (p->level < 2)
    for (uint32_t i = 0; i < d->step.n_inputs; i++)
      if (d->in_value[i] && !d->in_value[i]->constant) {
        uint32_t *of = slots_of(l, d->in_value[i]);
        if (of[ROW] != HN_NO_SLOT) of[LAST] = HN_NO_SLOT;
      }
  return HONE_OK;
}

/* ------------------------------------------------------------------ units to steps */

/* Layouts to try, best first. */
static uint32_t layouts(hn_lowering *l, const hn_unit *u, hone_layout out[2]) {
  const hn_layout_rule *rule = hn_layout_rule_of(u->kind == HN_UNIT_POINTWISE ? "Pointwise" : u->anchor);
  uint32_t n = 0;
  if (rule && u->out && u->out->desc.rank >= 3 && hone_desc_known(&u->out->desc)) {
    bool last = rule->wants;
    const hn_unit *const *more = (const hn_unit *const *)u->absorbed;
    for (uint32_t k = 0;
         !last && l->plan->level >= 2 && k <= (u->kind == HN_UNIT_POINTWISE ? u->n_absorbed : 0); k++) {
      const hn_unit *w = k ? more[k - 1] : u;
      for (uint32_t i = 0; i < w->n_in && !(i && rule->first_only); i++) {
        const hn_value *v = w->in[i];
        const uint32_t *s = v && !v->constant ? l->slot_of[v->id] : NULL;
        last |= s && s[LAST] != HN_NO_SLOT && s[ROW] == HN_NO_SLOT && v->desc.rank == u->out->desc.rank;
      }
    }
    if (last) out[n++] = LAST;
  }
  out[n++] = ROW;
  return n;
}

/* Finds layout and tactic for u with n_epi epilogue units. */
static bool choose(hn_lowering *l, const hn_unit *u, uint32_t n_epi, draft *d,
                   const hone_tactic_desc **tactic, double *predicted, hn_str *why) {
  hone_layout order[2];
  uint32_t n = layouts(l, u, order);
  for (uint32_t k = 0; k < n; k++) {
    if (!make_draft(l, u, n_epi, order[k], d) || !outputs_known(d)) continue;
    if (u->node->op && (u->node->op->flags & (HONE_OP_CONTROL | HONE_OP_DATA_DEPENDENT))) continue;
    *tactic = hn_choose_tactic(l->plan, &d->step, predicted, why);
    if (*tactic) return true;
  }
  return false;
}

bool hn_lower_takes(hn_lowering *l, const hn_unit *u) {
  draft *d = HN_NEW(l->temp, draft);
  const hone_tactic_desc *t;
  double s;
  return d && choose(l, u, 0, d, &t, &s, NULL);
}

/* Lets the tactics shorten epilogues that none of them takes. */
static void trim(hn_lowering *l, hn_unit *u) {
  draft *d = HN_NEW(l->temp, draft);
  uint32_t keep = d ? u->n_absorbed : 0;
  for (; keep > 0; keep--) {
    const hone_tactic_desc *t;
    double s;
    if (choose(l, u, keep, d, &t, &s, NULL)) break;
  }
  for (uint32_t k = keep; k < u->n_absorbed; k++) u->absorbed[k]->into = NULL;
  u->n_absorbed = keep;
}

static uint32_t place_of(const hn_unit *u) {
  uint32_t at = u->order;
  for (uint32_t k = 0; k < u->n_absorbed; k++)
    if (u->absorbed[k]->order > at) at = u->absorbed[k]->order;
  return at;
}

static hone_status emit_view(hn_lowering *l, const hn_unit *u, bool *done, hone_error *error) {
  *done = false;
  const hn_value *x = u->in[0], *y = u->out;
  if (!hone_desc_known(&x->desc) || !hone_desc_known(&y->desc) ||
      hone_desc_count(&x->desc) != hone_desc_count(&y->desc))
    return HONE_OK;
  uint32_t in;
  hone_status status = slot_for(l, x, ROW, &in, error);
  if (status != HONE_OK) return status;
  /* What a caller gets must not be the memory that a caller gave. */
  if (y->is_output && l->plan->slots.ptr[hn_slot_root(l->plan, in)].place == HN_PLACE_INPUT) return HONE_OK;
  hone_tensor_desc d = laid_out(&y->desc, ROW);
  uint32_t slot = alias_slot(l, in, &d, y), *of = slots_of(l, y);
  if (slot == HN_NO_SLOT || !of) return hn_fail_memory(error, sizeof d, "lowering");
  of[ROW] = slot;
  *done = true;
  return HONE_OK;
}

/* A Transpose between NCHW and NHWC is a change of name when the bytes already lie that way. */
static hone_status emit_transpose_view(hn_lowering *l, const hn_unit *u, bool *done, hone_error *error) {
  *done = false;
  if (l->plan->level < 2 || strcmp(u->anchor, "Transpose") != 0 || !u->in[0] || u->in[0]->constant)
    return HONE_OK;
  const hn_value *x = u->in[0], *y = u->out;
  size_t n;
  const int64_t *perm = hone_node_ints(u->node, "perm", &n);
  if (!perm || (int32_t)n != x->desc.rank || n < 3 || !hone_desc_known(&x->desc)) return HONE_OK;
  bool to_last = perm[0] == 0 && perm[n - 1] == 1, to_first = perm[0] == 0 && perm[1] == (int64_t)n - 1;
  for (size_t i = 1; i + 1 < n; i++) to_last = to_last && perm[i] == (int64_t)i + 1;
  for (size_t i = 2; i < n; i++) to_first = to_first && perm[i] == (int64_t)i - 1;
  uint32_t *xs = slots_of(l, x), *ys = slots_of(l, y);
  if (!xs || !ys) return hn_fail_memory(error, sizeof *xs, "lowering");
  hone_layout from = to_last ? LAST : ROW, to = to_last ? ROW : LAST;
  if ((!to_last && !to_first) || xs[from] == HN_NO_SLOT) return HONE_OK;
  if (y->is_output && l->plan->slots.ptr[hn_slot_root(l->plan, xs[from])].place == HN_PLACE_INPUT)
    return HONE_OK;
  hone_tensor_desc d = laid_out(&y->desc, to);
  ys[to] = alias_slot(l, xs[from], &d, y);
  if (ys[to] == HN_NO_SLOT) return hn_fail_memory(error, sizeof d, "lowering");
  *done = true;
  return HONE_OK;
}

/* Values of this graph that a control node's bodies read. */
static bool captured(const hn_graph *g, const hone_node *n, const hn_value **list, uint32_t *count,
                     uint32_t max) {
  for (uint32_t k = 0; k < n->n_attr; k++) {
    if (n->attr[k].type != HONE_ATTR_GRAPH) continue;
    const hn_graph *body = n->attr[k].g;
    for (const hone_node *b = body->first;; b = b->next) {
      uint32_t m = b ? b->n_in : (uint32_t)body->outputs.len;
      for (uint32_t i = 0; i < m; i++) {
        const hn_value *v = b ? b->in[i] : body->outputs.ptr[i];
        if (!v || v->graph != g || (v->constant && !v->producer)) continue;
        uint32_t j = 0;
        while (j < *count && list[j] != v) j++;
        if (j < *count) continue;
        if (*count == max) return false;
        list[(*count)++] = v;
      }
      if (!b) break;
      if (!captured(g, b, list, count, max)) return false;
    }
  }
  return true;
}

static hone_status emit_control(hn_lowering *l, const hn_unit *u, hone_error *error) {
  hn_arena *a = &l->plan->arena;
  enum { MAX_CAPTURED = 4096 };
  const hn_value **list = HN_NEW_ARRAY(l->temp, const hn_value *, MAX_CAPTURED);
  uint32_t count = 0;
  if (!list) return hn_fail_memory(error, MAX_CAPTURED, "lowering");
  if (!captured(u->node->graph, u->node, list, &count, MAX_CAPTURED))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED,
                   "node '%s' (%s) reads more than %d values of the graph around it", u->node->name,
                   u->anchor, MAX_CAPTURED);
  uint32_t n_in = u->n_in, *in = HN_NEW_ARRAY(a, uint32_t, n_in + count),
           *out = HN_NEW_ARRAY(a, uint32_t, u->node->n_out);
  hone_step_tensor *din = HN_NEW_ARRAY(a, hone_step_tensor, n_in),
                   *dout = HN_NEW_ARRAY(a, hone_step_tensor, u->node->n_out);
  if (!in || !out || !din || !dout) return hn_fail_memory(error, count, "lowering");
  for (uint32_t i = 0; i < n_in + count; i++) {
    const hn_value *v = i < n_in ? u->in[i] : list[i - n_in];
    in[i] = HN_NO_SLOT;
    if (!v) continue;
    hone_status status = slot_for(l, v, ROW, &in[i], error);
    if (status != HONE_OK) return status;
    if (i < n_in) din[i].desc = v->desc;
  }
  for (uint32_t i = 0; i < u->node->n_out; i++) {
    hn_value *v = u->node->out[i];
    out[i] = HN_NO_SLOT;
    if (!v) continue;
    dout[i].desc = v->desc;
    uint32_t *of = slots_of(l, v);
    out[i] = of ? new_slot(l, &v->desc, v, HN_PLACE_HEAP) : HN_NO_SLOT;
    if (out[i] == HN_NO_SLOT) return hn_fail_memory(error, sizeof *of, "lowering");
    of[ROW] = out[i];
  }
  hn_step s = {
      .kind = HN_STEP_CONTROL, .in = in, .out = out, .n_captured = count, .refused = "", .what = u->anchor};
  s.desc = (hone_step){HONE_DESC_HEAD(hone_step),
                       .anchor = u->anchor,
                       .name = u->node->name,
                       .node = u->node,
                       .n_inputs = n_in,
                       .n_anchor_inputs = n_in,
                       .input = din,
                       .n_outputs = u->node->n_out,
                       .output = dout};
  hone_status status = own_nodes(l, &s, u, 0, error);
  if (status != HONE_OK) return status;
  return hn_vec_push(&l->plan->steps, s) ? HONE_OK : hn_fail_memory(error, sizeof s, "a step");
}

/* More inputs or outputs than a tactic's description holds: the reference takes any number. */
static hone_status emit_wide(hn_lowering *l, const hn_unit *u, hone_error *error) {
  hn_arena *a = &l->plan->arena;
  const hone_node *n = u->node;
  uint32_t *in = HN_NEW_ARRAY(a, uint32_t, n->n_in), *out = HN_NEW_ARRAY(a, uint32_t, n->n_out);
  hone_step_tensor *din = HN_NEW_ARRAY(a, hone_step_tensor, n->n_in),
                   *dout = HN_NEW_ARRAY(a, hone_step_tensor, n->n_out);
  if (!in || !out || !din || !dout) return hn_fail_memory(error, n->n_in, "lowering");
  for (uint32_t i = 0; i < n->n_in; i++) {
    in[i] = HN_NO_SLOT;
    if (!n->in[i]) continue;
    hone_status status = slot_for(l, n->in[i], ROW, &in[i], error);
    if (status != HONE_OK) return status;
    din[i] = (hone_step_tensor){l->plan->slots.ptr[in[i]].desc, l->plan->slots.ptr[in[i]].constant};
  }
  for (uint32_t i = 0; i < n->n_out; i++) {
    out[i] = HN_NO_SLOT;
    if (!n->out[i]) continue;
    dout[i].desc = laid_out(&n->out[i]->desc, ROW);
    bool heap = !hone_desc_known(&dout[i].desc) || (n->op->flags & HONE_OP_DATA_DEPENDENT) ||
                dout[i].desc.dtype == HONE_DTYPE_STRING;
    uint32_t *of = slots_of(l, n->out[i]);
    out[i] = of ? new_slot(l, &dout[i].desc, n->out[i], heap ? HN_PLACE_HEAP : HN_PLACE_ARENA) : HN_NO_SLOT;
    if (out[i] == HN_NO_SLOT) return hn_fail_memory(error, sizeof *of, "lowering");
    of[ROW] = out[i];
  }
  hn_step s = {.kind = HN_STEP_REF, .in = in, .out = out, .refused = "", .what = u->anchor};
  s.desc = (hone_step){HONE_DESC_HEAD(hone_step),
                       .anchor = u->anchor,
                       .name = n->name,
                       .node = n,
                       .n_inputs = n->n_in,
                       .n_anchor_inputs = n->n_in,
                       .input = din,
                       .n_outputs = n->n_out,
                       .output = dout};
  hone_status status = own_nodes(l, &s, u, 0, error);
  if (status != HONE_OK) return status;
  return hn_vec_push(&l->plan->steps, s) ? HONE_OK : hn_fail_memory(error, sizeof s, "a step");
}

static hone_status emit_ref(hn_lowering *l, const hn_unit *u, draft *d, const char *why, hone_error *error) {
  if (!u->node->op || !u->node->op->reference)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "no tactic takes node '%s' (%s) and it has no reference",
                   u->node->name, u->anchor);
  hn_unit plain = *u;
  plain.kind = HN_UNIT_NODE;
  plain.anchor = u->node->op_type;
  plain.n_in = u->node->n_in;
  plain.in = u->node->in;
  plain.n_absorbed = 0;
  if (u->node->n_in > MAX_IN || u->node->n_out > HN_UNIT_OPERANDS) return emit_wide(l, &plain, error);
  if (!make_draft(l, &plain, 0, ROW, d)) return hn_fail_memory(error, sizeof *d, "lowering");
  return commit(l, &plain, 0, d, HN_STEP_REF, NULL, 0, why, error);
}

static hone_status emit_unit(hn_lowering *l, hn_unit *u, hone_error *error) {
  hone_status status = HONE_OK;
  bool done = false;
  if (u->node->op && (u->node->op->flags & HONE_OP_CONTROL)) return emit_control(l, u, error);
  if (u->kind == HN_UNIT_VIEW) {
    status = emit_view(l, u, &done, error);
    if (status != HONE_OK || done) return status;
  } else if (u->kind == HN_UNIT_NODE && !l->plan->reference) {
    status = emit_transpose_view(l, u, &done, error);
    if (status != HONE_OK || done) return status;
  }
  draft *d = HN_NEW(l->temp, draft);
  if (!d) return hn_fail_memory(error, sizeof *d, "lowering");
  hn_str why = {0};
  const hone_tactic_desc *tactic = NULL;
  double predicted = 0;
  if (!l->plan->reference && choose(l, u, u->n_absorbed, d, &tactic, &predicted, &why)) {
    status = commit(l, u, u->n_absorbed, d, HN_STEP_TACTIC, tactic, predicted, why.ptr, error);
  } else if (u->n_absorbed) { /* nobody takes the group: node by node, in graph order */
    hn_unit *parts[64];
    uint32_t n = 0;
    for (uint32_t k = 0; k <= u->n_absorbed; k++) {
      hn_unit *part = k < u->n_absorbed ? u->absorbed[k] : u;
      uint32_t at = n++;
      while (at > 0 && parts[at - 1]->order > part->order) {
        parts[at] = parts[at - 1];
        at--;
      }
      parts[at] = part;
    }
    u->n_absorbed = 0;
    for (uint32_t k = 0; k < n && status == HONE_OK; k++) status = emit_unit(l, parts[k], error);
  } else
    status = emit_ref(l, u, d, why.ptr, error);
  hn_str_free(&why);
  return status;
}

static int by_place(const void *a, const void *b) {
  const hn_unit *x = *(hn_unit *const *)a, *y = *(hn_unit *const *)b;
  uint32_t px = place_of(x), py = place_of(y);
  return px < py ? -1 : px > py;
}

static hone_status bind_ports(hn_lowering *l, hone_error *error) {
  hn_plan *p = l->plan;
  hn_graph *g = p->model->graph;
  p->inputs = HN_NEW_ARRAY(&p->arena, const hn_value *, g->inputs.len);
  p->input_slot = HN_NEW_ARRAY(&p->arena, uint32_t, g->inputs.len);
  p->outputs = HN_NEW_ARRAY(&p->arena, const hn_value *, g->outputs.len);
  p->output_slot = HN_NEW_ARRAY(&p->arena, uint32_t, g->outputs.len);
  if (!p->inputs || !p->input_slot || !p->outputs || !p->output_slot)
    return hn_fail_memory(error, g->inputs.len, "the plan");
  for (size_t i = 0; i < g->inputs.len; i++) {
    hn_value *v = g->inputs.ptr[i];
    if (v->constant) continue;
    uint32_t slot = new_slot(l, &v->desc, v, HN_PLACE_INPUT), *of = slots_of(l, v);
    if (slot == HN_NO_SLOT || !of) return hn_fail_memory(error, sizeof *of, "the plan");
    l->plan->slots.ptr[slot].input = p->n_inputs;
    of[ROW] = slot;
    p->input_slot[p->n_inputs] = slot;
    p->inputs[p->n_inputs++] = v;
  }
  return HONE_OK;
}

static hone_status return_outputs(hn_lowering *l, hone_error *error) {
  hn_plan *p = l->plan;
  hn_graph *g = p->model->graph;
  for (size_t i = 0; i < g->outputs.len; i++) {
    hone_status status = slot_for(l, g->outputs.ptr[i], ROW, &p->output_slot[i], error);
    if (status != HONE_OK) return status;
    p->outputs[p->n_outputs++] = g->outputs.ptr[i];
  }
  return HONE_OK;
}

hone_status hn_lower(hn_plan *plan, hone_error *error) {
  hn_arena temp = {0};
  hn_lowering l = {.plan = plan, .temp = &temp};
  HN_VEC(hn_unit *) order = {0};
  hone_status status = HONE_ERROR_MEMORY;
  size_t n = plan->model->next_value_id;
  l.by_value = HN_NEW_ARRAY(&temp, hn_unit *, n);
  l.slot_of = HN_NEW_ARRAY(&temp, uint32_t *, n);
  if (!l.by_value || !l.slot_of) {
    status = hn_fail_memory(error, n * sizeof(void *), "lowering");
    goto done;
  }
  if ((status = bind_ports(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_units(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_patterns(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_qdq(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_fuse(&l, error)) != HONE_OK) goto done;
  for (size_t i = 0; i < l.units.len; i++)
    if (hn_fusable_anchor(l.units.ptr[i]) && l.units.ptr[i]->n_absorbed) trim(&l, l.units.ptr[i]);
  if ((status = hn_lower_groups(&l, error)) != HONE_OK) goto done;
  for (size_t i = 0; i < l.units.len; i++)
    if (!l.units.ptr[i]->into && !hn_vec_push(&order, l.units.ptr[i])) {
      status = hn_fail_memory(error, sizeof(void *), "lowering");
      goto done;
    }
  if (order.len) qsort(order.ptr, order.len, sizeof *order.ptr, by_place);
  for (size_t i = 0; i < order.len; i++)
    if ((status = emit_unit(&l, order.ptr[i], error)) != HONE_OK) {
      if (error && !error->where[0])
        hn_error_where(error, "node '%s' (%s)", order.ptr[i]->node->name, order.ptr[i]->node->op_type);
      goto done;
    }
  status = return_outputs(&l, error);
done:
  hn_vec_free(&order);
  hn_vec_free(&l.units);
  hn_arena_free(&temp);
  return status;
}
