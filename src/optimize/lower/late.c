/* What is done with shapes that only the run knows, and, for accelerators, with the small numbers that decide
 * them. */
#include "optimize/lower/late.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { SMALL = 64, DEPTH = 32 };

static bool on_host(const hone_node *n, uint32_t i) { return n->op && i < 32 && n->op->host_inputs >> i & 1; }

static bool is_constant(const hn_value *v) { return v->constant && !v->producer; }

/* ------------------------------------------------------------------ shape arithmetic */

/* A number or a short list; unknown: its length may not be known yet. */
static bool small(const hn_value *v, bool unknown) {
  const hone_tensor_desc *d = &v->desc;
  if (v->foreign || d->rank < 0 || d->rank > 1) return false;
  if (d->dtype != HONE_DTYPE_I64 && d->dtype != HONE_DTYPE_I32 && d->dtype != HONE_DTYPE_BOOL &&
      d->dtype != HONE_DTYPE_F32)
    return false;
  return hone_desc_known(d) ? hone_desc_count(d) <= SMALL : unknown;
}

static bool all_small(hn_value *const *list, uint32_t n, bool unknown) {
  for (uint32_t i = 0; i < n; i++)
    if (list[i] && !small(list[i], unknown)) return false;
  return true;
}

/* Is the value only there to say what shapes are? */
static bool says_shapes(hn_lowering *l, const hn_value *v, int depth);

static bool only_shapes(hn_lowering *l, const hn_value *v, int depth) {
  if (v->is_output || !v->users.len || depth == DEPTH) return false;
  for (size_t k = 0; k < v->users.len; k++) {
    const hone_node *n = v->users.ptr[k].node;
    if (n->graph != v->graph || !n->op || n->op->flags & HONE_OP_CONTROL) return false;
    if (on_host(n, v->users.ptr[k].index)) continue;
    if (!all_small(n->in, n->n_in, true) || !all_small(n->out, n->n_out, true)) return false;
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i] && !says_shapes(l, n->out[i], depth + 1)) return false;
  }
  return true;
}

static bool says_shapes(hn_lowering *l, const hn_value *v, int depth) {
  enum { UNKNOWN, NO, YES };
  uint8_t *known = &l->says_shapes[v->id];
  if (*known == UNKNOWN) *known = only_shapes(l, v, depth) ? YES : NO;
  return *known == YES;
}

/* Are all operands constants or numbers that shape work made, and at least one of these? */
static bool of_shapes(const hn_lowering *l, const hn_unit *u) {
  bool any = false;
  for (uint32_t i = 0; i < u->n_in; i++) {
    if (!u->in[i] || is_constant(u->in[i])) continue;
    if (!l->shape_value[u->in[i]->id]) return false;
    any = true;
  }
  return any;
}

static bool ordinary(const hn_lowering *l, const hn_unit *u) {
  const hn_plan *p = l->plan;
  return p->backend->asynchronous && !p->reference && u->kind != HN_UNIT_PATTERN &&
         u->kind != HN_UNIT_CHAIN && !u->n_absorbed && u->node->op && u->node->op->reference &&
         !(u->node->op->flags & HONE_OP_CONTROL);
}

bool hn_shape_only(const hn_unit *u) {
  return u->kind == HN_UNIT_NODE && u->node->op && u->node->op->flags & HONE_OP_SHAPE_ONLY;
}

bool hn_shape_work(hn_lowering *l, const hn_unit *u) {
  const hone_node *n = u->node;
  if (!ordinary(l, u) || n->op->flags & HONE_OP_RANDOM) return false;
  if (hn_shape_only(u) || (!n->n_in && hn_is_op(n, "Constant"))) return true; /* nothing to compute */
  if (all_small(n->in, n->n_in, false) && all_small(n->out, n->n_out, false) && of_shapes(l, u)) return true;
  if (!all_small(n->in, n->n_in, true) || !all_small(n->out, n->n_out, true) || !n->n_out) return false;
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i] && !says_shapes(l, n->out[i], 0)) return false;
  return true;
}

bool hn_shape_group(const hn_lowering *l, const hn_unit *u) {
  if (!l->plan->backend->asynchronous || u->kind != HN_UNIT_POINTWISE || !u->n_absorbed) return false;
  bool any = false;
  for (uint32_t k = 0; k <= u->n_absorbed; k++) {
    const hn_unit *part = k < u->n_absorbed ? u->absorbed[k] : u;
    if (!all_small(part->in, part->n_in, false)) return false;
    for (uint32_t i = 0; i < part->n_in; i++) {
      const hn_value *v = part->in[i];
      const hn_unit *maker = l->by_value[v->id];
      if (is_constant(v) || (maker && (maker == u || maker->into == u))) continue;
      if (!l->shape_value[v->id]) return false;
      any = true;
    }
  }
  return any;
}

/* ------------------------------------------------------------------ late steps */

static bool has_tactic(const hn_plan *p, const hone_node *n) {
  enum { LONGEST = 128 };
  char anchor[LONGEST];
  const int length =
      snprintf(anchor, sizeof anchor, "%s%s%s", n->domain, n->domain[0] ? "." : "", n->op_type);
  return length > 0 && length < LONGEST && hn_listing_find(p->tactics, anchor);
}

bool hn_late_function(const hn_plan *plan, const hone_node *n, hn_arena *arena, hone_pw_program *program) {
  hn_unit f = {0};
  if (has_tactic(plan, n) || !hn_pointwise_function(n, &f) || f.chain || f.n_in != n->n_in || f.n_in > 3)
    return false;
  if (!program) return true;
  hone_pw_instr *instr = HN_NEW_ARRAY(arena, hone_pw_instr, f.n_in + 2);
  if (!instr) return false;
  for (uint32_t i = 0; i < f.n_in; i++)
    instr[i] = (hone_pw_instr){.op = HONE_PW_LOAD, .dst = (uint8_t)i, .a = (uint8_t)i};
  instr[f.n_in] = (hone_pw_instr){
      .op = (uint8_t)f.op, .dst = 3, .a = 0, .b = 1, .c = 2, .alpha = f.alpha, .beta = f.beta};
  instr[f.n_in + 1] = (hone_pw_instr){.op = HONE_PW_STORE, .dst = 0, .a = 3};
  *program = (hone_pw_program){f.n_in + 2, instr};
  return true;
}

static bool function_of(hn_lowering *l, const hone_node *n, hone_pw_program *program) {
  return hn_late_function(l->plan, n, &l->plan->arena, program);
}

/* Has a step on the host made the value, and is it there alone? */
static bool made_on_host(hn_lowering *l, const hn_value *v) {
  static const hn_form there[] = {HN_ROW, HN_LAST, HN_ROW | HN_NARROW, HN_LAST | HN_NARROW};
  const uint32_t *s = hn_slots_of(l, v);
  return s && s[HN_HOST] != HN_NO_SLOT && hn_form_at_hand(l, v, there, 4) == HN_FORMS &&
         l->plan->slots.ptr[hn_slot_root(l->plan, s[HN_HOST])].place != HN_PLACE_INPUT;
}

/* The same on the CPU, where every value is at hand: steps whose shapes, or the numbers that decide them,
 * only the run knows. Views and what counts elements are the reference's. */
static bool late_here(hn_lowering *l, const hn_unit *u) {
  enum {
    APART = HONE_OP_CONTROL | HONE_OP_SHAPE_ONLY | HONE_OP_DATA_DEPENDENT | HONE_OP_RANDOM | HONE_OP_VIEW
  };
  const hone_node *n = u->node;
  bool late = false, data = false;
  if (l->plan->reference || u->n_absorbed || !n->op->infer || n->op->flags & APART) return false;
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (!n->out[i]) continue;
    if (!hn_value_is_plain(n->out[i])) return false;
    late |= !hone_desc_known(&n->out[i]->desc);
  }
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i]) continue;
    if (!hn_value_is_plain(n->in[i])) return false;
    late |= !hone_desc_known(&n->in[i]->desc) || (on_host(n, i) && !is_constant(n->in[i]));
    data |= !on_host(n, i);
  }
  return late && data && (has_tactic(l->plan, n) || function_of(l, n, NULL));
}

bool hn_late(hn_lowering *l, const hn_unit *u) {
  const hone_node *n = u->node;
  if (!l->plan->backend->asynchronous) return late_here(l, u);
  if (!ordinary(l, u) || !n->op->infer || n->op->flags & HONE_OP_SHAPE_ONLY) return false;
  bool late = n->op->flags & HONE_OP_DATA_DEPENDENT, data = false, on_device = false;
  if (late && !n->op->most) return false;
  if (n->n_in > HN_MAX_IN || n->n_out > HN_UNIT_OPERANDS) return false;
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (!n->out[i]) continue;
    if (!hn_value_is_plain(n->out[i])) return false;
    late |= !hone_desc_known(&n->out[i]->desc);
  }
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hn_value *v = n->in[i];
    if (!v) continue;
    if (!hn_value_is_plain(v)) return false;
    late |= !hone_desc_known(&v->desc) || (on_host(n, i) && !is_constant(v));
    if (on_host(n, i)) continue;
    data = true;
    on_device |= is_constant(v) || !made_on_host(l, v);
  }
  return late && (!data || on_device) &&
         (n->op->flags & HONE_OP_VIEW || has_tactic(l->plan, n) || function_of(l, n, NULL));
}

/* The result of a view lies where its operand does. */
static void lie_there(hn_plan *p, const hn_step *s) {
  hn_slot *y = &p->slots.ptr[s->out[0]];
  const hn_slot *x = &p->slots.ptr[s->in[0]];
  y->alias = s->in[0];
  y->place = x->place;
  y->constant = x->constant;
  y->input = x->input;
  y->offset = x->alias == HN_NO_SLOT ? 0 : x->offset;
}

hone_status hn_late_emit(hn_lowering *l, const hn_unit *u, hn_draft *d, hn_refusals *why, hone_error *error) {
  hn_plan *p = l->plan;
  const hone_node *n = u->node;
  const bool apart = p->backend->asynchronous;
  hn_unit plain = *u;
  plain.kind = HN_UNIT_NODE;
  if (!hn_draft_make(l, &plain, 0, HN_ROW, d)) return hn_fail_memory(error, sizeof *d, "lowering");
  for (uint32_t i = 0; i < d->step.n_inputs && apart; i++) {
    if (!d->in_value[i] || !on_host(n, i)) continue;
    d->in_form[i] = HN_HOST;
    if (d->in_slot[i] == HN_NO_SLOT) d->in[i].desc = hn_laid_out(p, &d->in_value[i]->desc, HN_HOST);
  }
  if (function_of(l, n, &d->program)) {
    d->step.anchor = "Pointwise";
    d->step.program = &d->program;
  }
  hone_status status = hn_draft_commit(l, &plain, 0, d, HN_STEP_LATE, NULL, 0, why, error);
  if (status != HONE_OK) return status;
  const uint32_t last = n->op->layouts;
  p->steps.ptr[p->steps.len - 1].late_last = last && !(last & HONE_LAST_ALL);
  if (n->op->flags & HONE_OP_VIEW) lie_there(p, &p->steps.ptr[p->steps.len - 1]);
  return HONE_OK;
}
