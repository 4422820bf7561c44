/* Emits the steps. See lower.h for the parts. */
#include "optimize/lower/lower.h"

#include "optimize/lower/codes.h"
#include "optimize/lower/emit.h"
#include "optimize/lower/late.h"
#include "optimize/step/layout.h"

#include "base/error.h"
#include "model/ir/bytes.h"

#include <stdlib.h>
#include <string.h>

/* Layouts to try, best first. */
static uint32_t layouts(hn_lowering *l, const hn_unit *u, hn_form out[2]) {
  static const hn_form lasts[] = {HN_LAST, HN_LAST | HN_NARROW}, rows[] = {HN_ROW, HN_ROW | HN_NARROW};
  const hn_anchor anchor = hn_anchor_named(hn_is_program(u) ? "Pointwise" : u->anchor, u->node);
  uint32_t n = 0;
  const bool fewer = hn_drops_dims(u);
  if (anchor.layouts && u->out && (fewer || u->out->desc.rank >= 3) && hone_desc_known(&u->out->desc)) {
    bool last = anchor.layouts & HONE_LAST_WANTED;
    const hn_unit *const *more = (const hn_unit *const *)u->absorbed;
    for (uint32_t k = 0; !last && hn_carries_layout(l->plan) && k <= (hn_is_program(u) ? u->n_absorbed : 0);
         k++) {
      const hn_unit *w = k ? more[k - 1] : u;
      for (uint32_t i = 0; i < w->n_in && (!i || anchor.layouts & HONE_LAST_ALL); i++) {
        const hn_value *v = w->in[i];
        if (u->kind == HN_UNIT_CODES && hn_of_any_codes(v)) v = v->producer->in[0]; /* what it reads */
        last |= hn_form_at_hand(l, v, lasts, 2) != HN_FORMS && hn_form_at_hand(l, v, rows, 2) == HN_FORMS &&
                (fewer || v->desc.rank == u->out->desc.rank);
      }
    }
    if (last) out[n++] = HN_LAST;
  }
  out[n++] = HN_ROW;
  return n;
}

/* Finds layout and tactic for u with n_epi epilogue units. */
static bool choose_form(hn_lowering *l, const hn_unit *u, uint32_t n_epi, hn_draft *d,
                        const hone_tactic_desc **tactic, hn_estimate *estimate, hn_refusals *why) {
  hn_form order[2];
  uint32_t n = layouts(l, u, order);
  const bool narrow = l->plan->storage != HONE_DTYPE_F32 && l->plan->backend->asynchronous;
  bool found = false;
  for (uint32_t k = 0; k < n && !found; k++)
    for (int wide = narrow; wide >= 0 && !found;
         wide--) { /* f32 for the caller at once, where a tactic can */
      l->wide = wide;
      if (!hn_draft_make(l, u, n_epi, order[k], d) || !hn_draft_known(d)) continue;
      if (wide && (!d->out_value[0] || !hn_only_returned(d->out_value[0]) || d->out_form[0] & HN_NARROW))
        continue;
      if (u->node->op && (u->node->op->flags & (HONE_OP_CONTROL | HONE_OP_DATA_DEPENDENT))) continue;
      *tactic = l->any ? hn_any_tactic(l->plan, &d->step, estimate)
                       : hn_choose_tactic(l->plan, &d->step, estimate, why);
      found = *tactic != NULL;
    }
  l->wide = false;
  return found;
}

bool hn_lower_try(hn_lowering *l, const hn_unit *u, bool wide, hn_estimate *estimate) {
  hn_draft *d = hn_draft_scratch(l);
  const hone_tactic_desc *t;
  l->all_wide = wide;
  const bool found = d && choose_form(l, u, u->n_absorbed, d, &t, estimate, NULL);
  l->all_wide = false;
  return found;
}

/* A product by weights that the file has in 16 bits: they stay so where a tactic takes that. Plans of
 * narrower arithmetic pack them narrow in any case. */
static bool choose_filed(hn_lowering *l, const hn_unit *u, uint32_t n_epi, hn_draft *d,
                         const hone_tactic_desc **tactic, hn_estimate *estimate) {
  const hn_plan *p = l->plan;
  if (p->storage != HONE_DTYPE_F32 || p->math > HONE_MATH_F32 || p->backend->asynchronous || u->n_parts ||
      hn_is_program(u) || u->n_in <= HN_PRODUCT_WEIGHTS || !u->anchor ||
      (strcmp(u->anchor, "MatMul") != 0 && strcmp(u->anchor, "Gemm") != 0) ||
      !hn_lower_is_filed(l, u->in[HN_PRODUCT_WEIGHTS]))
    return false;
  l->filed = true;
  const bool found = choose_form(l, u, n_epi, d, tactic, estimate, NULL);
  l->filed = false;
  return found;
}

/* Where quantising operators want f32, tactics may refuse to mix it with the narrow type: then all is f32.
 * On a processor any step may be of f32 alone. */
static bool choose(hn_lowering *l, const hn_unit *u, uint32_t n_epi, hn_draft *d,
                   const hone_tactic_desc **tactic, hn_estimate *estimate, hn_refusals *why) {
  hn_estimate narrow = {0};
  if (choose_filed(l, u, n_epi, d, tactic, estimate)) return true;
  const bool open = l->plan->storage != HONE_DTYPE_F32 && !l->plan->backend->asynchronous && !l->stored;
  const bool taken = choose_form(l, u, n_epi, d, tactic, open ? &narrow : estimate, why);
  if (taken && !open) return true;
  if (open) { /* what values are stored as follows from what is faster, not the other way about (stored.c) */
    l->all_wide = true;
    const bool wide = choose_form(l, u, n_epi, d, tactic, estimate, why);
    l->all_wide = false;
    if (!taken || (wide && estimate->seconds < narrow.seconds)) return wide;
    return choose_form(l, u, n_epi, d, tactic, estimate, why);
  }
  if (l->plan->storage == HONE_DTYPE_F32) return false;
  if (l->plan->backend->asynchronous && !hn_touches_exact(l, u, n_epi)) {
    /* Moves (a Concat with a constant token) take one type. */
    if (hn_is_program(u) || !u->node->op || !(u->node->op->flags & HONE_OP_MOVE)) return false;
    l->narrow_constants = true;
    const bool found = choose_form(l, u, n_epi, d, tactic, estimate, why);
    l->narrow_constants = false;
    return found;
  }
  l->all_wide = true;
  const bool found = choose_form(l, u, n_epi, d, tactic, estimate, why);
  l->all_wide = false;
  return found;
}

/* With its first n_epi absorbed units, by any tactic. */
static bool takes(hn_lowering *l, const hn_unit *u, uint32_t n_epi) {
  hn_draft *d = hn_draft_scratch(l);
  const hone_tactic_desc *t;
  hn_estimate e;
  l->any = true;
  const bool taken = d && choose(l, u, n_epi, d, &t, &e, NULL);
  l->any = false;
  return taken;
}

bool hn_lower_takes(hn_lowering *l, const hn_unit *u) { return takes(l, u, 0); }

/* The unit that makes v does not show it. */
static bool is_inside(const hn_lowering *l, const hn_value *v) {
  const hn_unit *maker = v->producer ? l->by_value[v->id] : NULL;
  if (!maker || maker->n_nodes <= 1 || maker->out == v) return false;
  for (uint32_t o = 0; maker->node && o < maker->node->n_out; o++)
    if (maker->node->out[o] == v) return false;
  return true;
}

static bool reads_through(const hn_unit *u, const hn_value *v) {
  for (uint32_t i = 0; u->view && i < u->n_in; i++)
    if (u->view[i].base == v) return true;
  return false;
}

const hone_node *hn_lower_hidden(const hn_lowering *l, const hn_unit *unit) {
  for (uint32_t i = 0; unit->view && i < unit->n_in; i++)
    if (unit->view[i].base && is_inside(l, unit->view[i].base)) return unit->view[i].base->producer;
  for (size_t k = 0; k < l->units.len; k++) {
    const hn_unit *other = l->units.ptr[k];
    if (!other->view || other->into) continue;
    for (uint32_t i = 0; i < unit->n_nodes; i++)
      for (uint32_t o = 0; o < unit->nodes[i]->n_out; o++) {
        const hn_value *v = unit->nodes[i]->out[o];
        if (v && v != unit->out && reads_through(other, v)) return unit->nodes[i];
      }
  }
  return NULL;
}

bool hn_lower_predict(hn_lowering *l, const hn_unit *u, hn_estimate *estimate) {
  if (!l->guess) l->guess = hn_arena_raw(l->temp, sizeof *l->guess, HN_MEM_ALIGN);
  const hone_tactic_desc *t;
  return l->guess && choose(l, u, u->n_absorbed, l->guess, &t, estimate, NULL);
}

/* Lets the tactics shorten epilogues that none of them takes. */
static void trim(hn_lowering *l, hn_unit *u) {
  uint32_t keep = u->n_absorbed;
  while (keep > 0 && !takes(l, u, keep)) keep--;
  if (keep < u->n_absorbed)
    hn_near(l, (hn_miss){.fusion = HN_FUSION_epilogue, .why = HN_MISS_TACTIC}, u->node,
            u->absorbed[keep]->node);
  for (uint32_t k = keep; k < u->n_absorbed; k++) u->absorbed[k]->into = NULL;
  u->n_absorbed = keep;
}

static uint32_t place_of(const hn_unit *u) {
  uint32_t at = u->order;
  for (uint32_t k = 0; k < u->n_parts; k++)
    if (place_of(u->parts[k]) > at) at = place_of(u->parts[k]);
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
  static const hn_form rows[] = {HN_ROW, HN_ROW | HN_NARROW, HN_ROW, HN_HOST},
                       lasts[] = {HN_LAST, HN_LAST | HN_NARROW, HN_LAST};
  uint32_t in;
  const bool exact = hn_is_exact(l, y); /* then f32 comes first */
  hn_form form = hn_form_at_hand(l, x, rows + !exact, 3);
  if (form == HN_FORMS) form = hn_form_at_hand(l, x, lasts + !exact, 2);
  form = form == HN_FORMS ? HN_ROW : form & ~(hn_form)HN_LAST;
  /* An accelerator returns a copy in any case: what it was given may pass through it under another name. */
  if (form == HN_HOST && y->is_output && !hn_dtype_points(y->desc.dtype)) form = HN_ROW;
  hone_status status = hn_slot_for(l, x, form, &in, error);
  if (status != HONE_OK) return status;
  /* What a caller gets must not be the memory that a caller gave. */
  if (y->is_output && l->plan->slots.ptr[hn_slot_root(l->plan, in)].place == HN_PLACE_INPUT) return HONE_OK;
  if (l->plan->slots.ptr[in].place == HN_PLACE_CONST) form = hn_home(l->plan);
  hone_tensor_desc d = hn_laid_out(l->plan, &y->desc, form);
  uint32_t slot = hn_slot_alias(l->plan, in, &d, y), *of = hn_slots_of(l, y);
  if (slot == HN_NO_SLOT || !of) return hn_fail_memory(error, sizeof d, "lowering");
  of[form] = slot;
  l->shape_value[y->id] = form == HN_HOST && l->shape_value[x->id];
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
  uint32_t *xs = hn_slots_of(l, x), *ys = hn_slots_of(l, y);
  if (!xs || !ys) return hn_fail_memory(error, sizeof *xs, "lowering");
  const hn_form froms[] = {(to_last ? HN_LAST : HN_ROW) | HN_NARROW, to_last ? HN_LAST : HN_ROW};
  const hn_form from = hn_form_at_hand(l, x, froms, 2);
  if ((!to_last && !to_first) || from == HN_FORMS) return HONE_OK;
  const hn_form to = from ^ HN_LAST;
  if (y->is_output && l->plan->slots.ptr[hn_slot_root(l->plan, xs[from])].place == HN_PLACE_INPUT)
    return HONE_OK;
  hone_tensor_desc d = hn_laid_out(l->plan, &y->desc, to);
  const hone_tensor_desc *f = &l->plan->slots.ptr[xs[from]].desc;
  if (f->channel_pitch > f->dim[1] || (to & HN_LAST && d.channel_pitch > d.dim[1])) return HONE_OK; /* gaps */
  ys[to] = hn_slot_alias(l->plan, xs[from], &d, y);
  if (ys[to] == HN_NO_SLOT) return hn_fail_memory(error, sizeof d, "lowering");
  *done = true;
  return HONE_OK;
}

/* Between f32 that is stored in 16 bits and these 16 bits a Cast is a change of name, on a device. */
static hone_status emit_cast_view(hn_lowering *l, const hn_unit *u, bool *done, hone_error *error) {
  *done = false;
  const hn_value *x = u->in[0], *y = u->out;
  const hone_dtype stored = l->plan->storage;
  if (l->plan->level < 2 || !l->plan->backend->asynchronous || stored == HONE_DTYPE_F32 ||
      strcmp(u->anchor, "Cast") != 0 || !x || x->constant || !hone_desc_known(&x->desc))
    return HONE_OK;
  const bool narrows = x->desc.dtype == HONE_DTYPE_F32 && y->desc.dtype == stored,
             widens = x->desc.dtype == stored && y->desc.dtype == HONE_DTYPE_F32;
  if ((!narrows && !widens) || (widens && y->is_output)) return HONE_OK;
  const hn_form froms[] = {narrows ? HN_ROW | HN_NARROW : HN_ROW, narrows ? HN_LAST | HN_NARROW : HN_LAST};
  hn_form from = hn_form_at_hand(l, x, froms, 2);
  uint32_t in, *ys = hn_slots_of(l, y);
  if (!ys) return hn_fail_memory(error, sizeof *ys, "lowering");
  if (from == HN_FORMS && narrows) return HONE_OK;
  if (from == HN_FORMS) from = HN_ROW;
  const hone_status status = hn_slot_for(l, x, from, &in, error);
  if (status != HONE_OK) return status;
  const hn_place place = l->plan->slots.ptr[hn_slot_root(l->plan, in)].place;
  if (place == HN_PLACE_CONST || (y->is_output && place == HN_PLACE_INPUT)) return HONE_OK;
  const hn_form to = from ^ HN_NARROW;
  const hone_tensor_desc d = hn_laid_out(l->plan, &y->desc, to);
  ys[to] = hn_slot_alias(l->plan, in, &d, y);
  if (ys[to] == HN_NO_SLOT) return hn_fail_memory(error, sizeof d, "lowering");
  *done = true;
  return HONE_OK;
}

/* A part of a row-major tensor whose elements follow each other is a name for them, on the processor: a
 * device wants whole vectors. */
static hone_status emit_part_view(hn_lowering *l, const hn_unit *u, bool *done, hone_error *error) {
  *done = false;
  const hone_node *n = u->node;
  if (strcmp(u->anchor, "Split") != 0 && strcmp(u->anchor, "Slice") != 0 && strcmp(u->anchor, "Gather") != 0)
    return HONE_OK;
  if (l->plan->level < 2 || l->plan->backend->asynchronous || n->n_out > HN_UNIT_OPERANDS || !u->n_in ||
      !u->in[0] || u->in[0]->constant || u->in[0]->desc.dtype != HONE_DTYPE_F32)
    return HONE_OK;
  static const hn_form rows[] = {HN_ROW | HN_NARROW, HN_ROW};
  const hn_form form = hn_form_at_hand(l, u->in[0], rows, 2);
  if (form == HN_FORMS) return HONE_OK;
  uint32_t *xs = hn_slots_of(l, u->in[0]);
  if (!xs) return hn_fail_memory(error, sizeof *xs, "lowering");
  const uint32_t from = xs[form];
  if (l->plan->slots.ptr[hn_slot_root(l->plan, from)].place != HN_PLACE_ARENA) return HONE_OK;
  int64_t offset[HN_UNIT_OPERANDS] = {0};
  for (uint32_t i = 0; i < n->n_out; i++) {
    hn_modes m;
    if (!n->out[i]) continue;
    if (n->out[i]->is_output || hn_is_exact(l, n->out[i]) || !hn_modes_part(n->out[i], &m) ||
        !hn_modes_contiguous(&m))
      return HONE_OK;
    offset[i] = m.offset;
  }
  for (uint32_t i = 0; i < n->n_out; i++) {
    const hn_value *y = n->out[i];
    if (!y) continue;
    const hone_tensor_desc d = hn_laid_out(l->plan, &y->desc, form);
    const uint32_t slot = hn_slot_part(l->plan, from, &d, offset[i], y);
    uint32_t *ys = hn_slots_of(l, y);
    if (slot == HN_NO_SLOT || !ys) return hn_fail_memory(error, sizeof d, "lowering");
    ys[form] = slot;
  }
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
        if (v && !hn_value_make_bytes(v)) return false; /* evaluation reads it as it is */
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
    hone_status status = hn_slot_for(l, v, hn_home(l->plan), &in[i], error);
    if (status != HONE_OK) return status;
    if (i < n_in) din[i].desc = v->desc, din[i].desc.quant = hn_quant_of(l->plan, v, &v->desc);
  }
  for (uint32_t i = 0; i < u->node->n_out; i++) {
    hn_value *v = u->node->out[i];
    out[i] = HN_NO_SLOT;
    if (!v) continue;
    dout[i].desc = v->desc;
    uint32_t *of = hn_slots_of(l, v);
    out[i] = of ? hn_slot_new(l->plan, &v->desc, v, HN_PLACE_HEAP) : HN_NO_SLOT;
    if (out[i] == HN_NO_SLOT) return hn_fail_memory(error, sizeof *of, "lowering");
    dout[i].desc.quant = l->plan->slots.ptr[out[i]].desc.quant;
    of[hn_home(l->plan)] = out[i];
  }
  hn_step s = {.kind = HN_STEP_CONTROL,
               .role = HONE_STEP_CONTROL,
               .in = in,
               .out = out,
               .n_captured = count,
               .what = u->anchor};
  s.desc = (hone_step){HONE_DESC_HEAD(hone_step),
                       .anchor = u->anchor,
                       .name = u->node->name,
                       .node = u->node,
                       .n_inputs = n_in,
                       .n_anchor_inputs = n_in,
                       .input = din,
                       .n_outputs = u->node->n_out,
                       .output = dout};
  hone_status status = hn_step_own(l, &s, u, 0, error);
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
    hone_status status = hn_slot_for(l, n->in[i], hn_home(l->plan), &in[i], error);
    if (status != HONE_OK) return status;
    din[i] = (hone_step_tensor){l->plan->slots.ptr[in[i]].desc, l->plan->slots.ptr[in[i]].constant};
  }
  for (uint32_t i = 0; i < n->n_out; i++) {
    out[i] = HN_NO_SLOT;
    if (!n->out[i]) continue;
    dout[i].desc = hn_laid_out(l->plan, &n->out[i]->desc, hn_home(l->plan));
    bool heap = !hone_desc_known(&dout[i].desc) || (n->op->flags & HONE_OP_DATA_DEPENDENT) ||
                hn_dtype_points(dout[i].desc.dtype);
    uint32_t *of = hn_slots_of(l, n->out[i]);
    out[i] = of ? hn_slot_new(l->plan, &dout[i].desc, n->out[i], heap ? HN_PLACE_HEAP : HN_PLACE_ARENA)
                : HN_NO_SLOT;
    if (out[i] == HN_NO_SLOT) return hn_fail_memory(error, sizeof *of, "lowering");
    dout[i].desc.quant = l->plan->slots.ptr[out[i]].desc.quant;
    of[hn_home(l->plan)] = out[i];
  }
  hn_step s = {.kind = HN_STEP_REF, .in = in, .out = out, .what = u->anchor};
  s.desc = (hone_step){HONE_DESC_HEAD(hone_step),
                       .anchor = u->anchor,
                       .name = n->name,
                       .node = n,
                       .n_inputs = n->n_in,
                       .n_anchor_inputs = n->n_in,
                       .input = din,
                       .n_outputs = n->n_out,
                       .output = dout};
  hone_status status = hn_step_own(l, &s, u, 0, error);
  if (status != HONE_OK) return status;
  return hn_vec_push(&l->plan->steps, s) ? HONE_OK : hn_fail_memory(error, sizeof s, "a step");
}

/* What reads nothing but dimensions takes its operand as it lies. */
static void shape_alone(hn_lowering *l, hn_draft *d) {
  static const hn_form any[] = {HN_HOST, HN_ROW, HN_LAST, HN_ROW | HN_NARROW, HN_LAST | HN_NARROW};
  if (d->in_slot[0] != HN_NO_SLOT || !d->in_value[0]) return;
  const hn_form form = hn_form_at_hand(l, d->in_value[0], any, 5);
  if (form != HN_FORMS) d->in_form[0] = form;
}

static hone_status emit_plain(hn_lowering *l, const hn_unit *u, hn_draft *d, hn_refusals *why,
                              hone_error *error) {
  if (!u->node->op || !u->node->op->reference)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "no tactic takes node '%s' (%s) and it has no reference",
                   u->node->name, u->anchor);
  hn_unit plain = *u;
  plain.kind = HN_UNIT_NODE;
  plain.anchor = hn_anchor_of(l, u->node);
  if (!plain.anchor) return hn_fail_memory(error, 0, "lowering");
  plain.n_in = u->node->n_in;
  plain.in = u->node->in;
  plain.n_absorbed = 0;
  if (u->node->n_in > HN_MAX_IN || u->node->n_out > HN_UNIT_OPERANDS) return emit_wide(l, &plain, error);
  if (hn_late(l, &plain)) return hn_late_emit(l, &plain, d, why, error);
  if (!hn_draft_make(l, &plain, 0, hn_home(l->plan), d)) return hn_fail_memory(error, sizeof *d, "lowering");
  if (hn_shape_only(&plain) && l->plan->backend->asynchronous) shape_alone(l, d);
  return hn_draft_commit(l, &plain, 0, d, HN_STEP_REF, NULL, 0, why, error);
}

/* References compute with the types of the model. */
static hone_status emit_ref(hn_lowering *l, const hn_unit *u, hn_draft *d, hn_refusals *why,
                            hone_error *error) {
  l->all_wide = !l->plan->backend->asynchronous;
  const hone_status status = emit_plain(l, u, d, why, error);
  l->all_wide = false;
  return status;
}

/* The host does it as what it is: work on shapes. */
static hone_status emit_shape_work(hn_lowering *l, const hn_unit *u, hn_draft *d, hone_error *error) {
  hone_status status = emit_ref(l, u, d, NULL, error);
  if (status != HONE_OK) return status;
  l->plan->steps.ptr[l->plan->steps.len - 1].shape_work = true;
  for (uint32_t i = 0; i < u->node->n_out; i++)
    if (u->node->out[i]) l->shape_value[u->node->out[i]->id] = true;
  return HONE_OK;
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
    if (status == HONE_OK && !done) status = emit_cast_view(l, u, &done, error);
    if (status == HONE_OK && !done) status = emit_part_view(l, u, &done, error);
    if (status != HONE_OK || done) return status;
  }
  hn_draft *d = hn_draft_scratch(l);
  if (!d) return hn_fail_memory(error, sizeof *d, "lowering");
  hn_refusals why = {.arena = &l->plan->arena};
  const hone_tactic_desc *tactic = NULL;
  hn_estimate estimate;
  if (hn_shape_work(l, u)) return emit_shape_work(l, u, d, error);
  if (!l->plan->reference && !hn_shape_group(l, u) &&
      choose(l, u, u->n_absorbed, d, &tactic, &estimate, &why)) {
    status = hn_draft_commit(l, u, u->n_absorbed, d, HN_STEP_TACTIC, tactic, estimate.seconds, &why, error);
  } else if (u->n_parts) {
    for (uint32_t k = 0; k < u->n_parts && status == HONE_OK; k++) status = emit_unit(l, u->parts[k], error);
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
    hn_near(l, (hn_miss){.fusion = HN_FUSION_pointwise, .why = HN_MISS_TACTIC}, parts[0]->node,
            parts[1]->node);
    u->n_absorbed = 0;
    for (uint32_t k = 0; k < n && status == HONE_OK; k++) status = emit_unit(l, parts[k], error);
  } else
    status = emit_ref(l, u, d, &why, error);
  hn_vec_free(&why.list);
  return status;
}

static int by_place(const void *a, const void *b) {
  const hn_unit *x = *(hn_unit *const *)a, *y = *(hn_unit *const *)b;
  uint32_t px = place_of(x), py = place_of(y);
  return px < py ? -1 : px > py;
}

/* May a caller's tensor of this value lie channels-last? */
static bool last_wanted(const hn_plan *p, bool output, const hn_value *v) {
  return p->ports && hn_home(p) == HN_ROW && hn_carries_layout(p) && v->desc.rank >= 3 &&
         hone_desc_known(&v->desc) && !hn_layout_free(&v->desc) &&
         p->ports->last(p->ports->arg, output, v->name);
}

static hone_status bind_ports(hn_lowering *l, hone_error *error) {
  hn_plan *p = l->plan;
  hn_graph *g = p->model->graph;
  p->inputs = HN_NEW_ARRAY(&p->arena, const hn_value *, g->inputs.len);
  p->input_slot = HN_NEW_ARRAY(&p->arena, uint32_t, g->inputs.len);
  p->outputs = HN_NEW_ARRAY(&p->arena, const hn_value *, g->outputs.len);
  p->output_slot = HN_NEW_ARRAY(&p->arena, uint32_t, g->outputs.len);
  p->input_desc = HN_NEW_ARRAY(&p->arena, hone_tensor_desc, g->inputs.len);
  p->output_desc = HN_NEW_ARRAY(&p->arena, hone_tensor_desc, g->outputs.len);
  if (!p->inputs || !p->input_slot || !p->outputs || !p->output_slot || !p->input_desc || !p->output_desc)
    return hn_fail_memory(error, g->inputs.len, "the plan");
  for (size_t i = 0; i < g->inputs.len; i++) {
    hn_value *v = g->inputs.ptr[i];
    if (v->constant) continue;
    const bool last = last_wanted(p, false, v);
    const hone_tensor_desc d = last ? hn_laid_out(p, &v->desc, HN_LAST) : v->desc;
    uint32_t slot = hn_slot_new(l->plan, &d, v, HN_PLACE_INPUT), *of = hn_slots_of(l, v);
    if (slot == HN_NO_SLOT || !of) return hn_fail_memory(error, sizeof *of, "the plan");
    l->plan->slots.ptr[slot].input = p->n_inputs;
    of[last ? HN_LAST : hn_home(p)] = slot;
    p->input_slot[p->n_inputs] = slot;
    p->input_desc[p->n_inputs] = l->plan->slots.ptr[slot].desc;
    p->inputs[p->n_inputs++] = v;
  }
  return HONE_OK;
}

/* What a caller gets: from an accelerator it is copied after the last step, unless a step on the host made
 * it. */
static hone_status return_outputs(hn_lowering *l, hone_error *error) {
  hn_plan *p = l->plan;
  hn_graph *g = p->model->graph;
  for (size_t i = 0; i < g->outputs.len; i++) {
    const hn_value *v = g->outputs.ptr[i];
    const uint32_t *s = hn_slots_of(l, v);
    if (!s) return hn_fail_memory(error, sizeof *s, "the plan");
    const bool made_here =
        hn_home(p) == HN_ROW || (v->constant && !v->producer) ||
        (s[HN_HOST] != HN_NO_SLOT && p->slots.ptr[hn_slot_root(p, s[HN_HOST])].place != HN_PLACE_INPUT);
    const uint32_t as_made = last_wanted(p, true, v) ? s[HN_LAST] : HN_NO_SLOT;
    if (as_made != HN_NO_SLOT && p->slots.ptr[as_made].desc.channel_pitch <= v->desc.dim[1]) {
      p->output_slot[i] = as_made;
      p->output_desc[p->n_outputs] = p->slots.ptr[as_made].desc;
      p->output_desc[p->n_outputs].quant = hn_quant_of(p, v, &v->desc);
      p->outputs[p->n_outputs++] = v;
      continue;
    }
    /* of a shape that only the run knows: a step brings it, as the block for what is returned has no place */
    const bool open = hn_home(p) == HN_HOST && !hone_desc_known(&v->desc);
    hone_status status =
        hn_slot_for(l, v, made_here || open ? hn_home(p) : HN_ROW, &p->output_slot[i], error);
    if (status != HONE_OK) return status;
    p->output_desc[p->n_outputs] = v->desc;
    p->output_desc[p->n_outputs].quant = hn_quant_of(p, v, &v->desc);
    p->outputs[p->n_outputs++] = v;
  }
  return HONE_OK;
}

/* What did not become the epilogue of one product and did of another is no near miss: x + y ends one of two.
 */
static void settle_misses(hn_lowering *l) {
  hn_misses *m = &l->plan->misses;
  size_t n = 0;
  for (size_t i = 0; i < m->list.len; i++) {
    const hn_miss *k = &m->list.ptr[i];
    const hn_unit *u = k->fusion == HN_FUSION_epilogue ? l->by_value[k->node[1]->out[0]->id] : NULL;
    if (!u || !u->into || u->into->kind == HN_UNIT_POINTWISE) m->list.ptr[n++] = *k;
  }
  m->list.len = n;
}

hone_status hn_lower(hn_plan *plan, hone_error *error) {
  hn_arena temp = {0};
  hn_lowering l = {.plan = plan, .temp = &temp};
  HN_VEC(hn_unit *) order = {0};
  hone_status status = HONE_ERROR_MEMORY;
  size_t n = plan->model->next_value_id;
  l.by_value = HN_NEW_ARRAY(&temp, hn_unit *, n);
  l.slot_of = HN_NEW_ARRAY(&temp, uint32_t *, n);
  l.staged = HN_NEW_ARRAY(&temp, uint32_t, plan->model->graph->inputs.len);
  for (size_t i = 0; l.staged && i < plan->model->graph->inputs.len; i++) l.staged[i] = HN_NO_SLOT;
  l.shape_value = HN_NEW_ARRAY(&temp, bool, n);
  l.says_shapes = HN_NEW_ARRAY(&temp, uint8_t, n);
  if (!l.by_value || !l.slot_of || !l.staged || !l.shape_value || !l.says_shapes) {
    status = hn_fail_memory(error, n * sizeof(void *), "lowering");
    goto done;
  }
  if ((status = hn_lower_quantisation(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_exact(&l, error)) != HONE_OK) goto done;
  if ((status = bind_ports(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_units(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_patterns(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_qdq(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_integer_sums(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_rotary(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_attention(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_fuse(&l, error)) != HONE_OK) goto done;
  for (size_t i = 0; i < l.units.len; i++)
    if (hn_fusable_anchor(l.units.ptr[i]) && l.units.ptr[i]->n_absorbed) trim(&l, l.units.ptr[i]);
  if ((status = hn_lower_chains(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_groups(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_squeezes(&l, error)) != HONE_OK) goto done;
  if ((status = hn_lower_stored(&l, error)) != HONE_OK) goto done;
  settle_misses(&l);
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
  hn_misses_bound(&plan->misses);
  status = return_outputs(&l, error);
done:
  hn_vec_free(&order);
  hn_vec_free(&l.units);
  hn_arena_free(&temp);
  return status;
}

bool hn_lower_function(const hn_plan *plan, const hone_node *n, hn_arena *arena, hone_pw_program *program) {
  return hn_late_function(plan, n, arena, program);
}
