/* Epilogues and pointwise groups.
 *
 * A fused step stands at the place of its last node: all other operands are there by then, and the swallowed
 * values have no other reader, so that no order is violated. */
#include "optimize/lower/lowering.h"

#include "base/error.h"

#include <string.h>

enum { MAX_GROUP = 48 };

static bool is_anchor(const hn_unit *u) {
  return u->kind == HN_UNIT_NODE && u->out && hn_anchor_named(u->anchor, u->node).epilogue;
}

bool hn_fusable_anchor(const hn_unit *u) {
  return is_anchor(u) && u->out->desc.dtype == HONE_DTYPE_F32 && hone_desc_known(&u->out->desc);
}

/* The unit of the i-th reader of v; NULL: none of this graph. */
static hn_unit *reading(const hn_lowering *l, const hn_value *v, size_t i) {
  const hone_node *n = v->users.ptr[i].node;
  return n->graph == v->graph && n->n_out && n->out[0] ? l->by_value[n->out[0]->id] : NULL;
}

/* A unit of several nodes may read a value in more than one of them. But x + x reads x twice as itself: its
 * operand is the value, not a part of it. */
hn_miss hn_lower_shared(const hn_lowering *l, hn_fusion fusion, const hn_value *v, const hn_unit *with) {
  hn_miss m = {.fusion = fusion, .value = v};
  if (v->is_output) m.why = HN_MISS_OUTPUT;
  for (size_t i = 0; i < v->users.len && m.why == HN_MISS_NONE; i++) {
    if (reading(l, v, i) == with) continue;
    m.other = v->users.ptr[i].node;
    m.why = m.other->graph == v->graph ? HN_MISS_READ : HN_MISS_BODY;
  }
  if (m.why == HN_MISS_NONE && with->n_nodes == 1 && v->users.len > 1) m.why = HN_MISS_TWICE;
  return m;
}

static bool absorb(hn_lowering *l, hn_unit *into, hn_unit *u) {
  if ((into->n_absorbed & (into->n_absorbed - 1)) == 0) {
    hn_unit **more = HN_NEW_ARRAY(l->temp, hn_unit *, into->n_absorbed ? into->n_absorbed * 2 : 1);
    if (!more) return false;
    if (into->n_absorbed) memcpy(more, into->absorbed, into->n_absorbed * sizeof *more);
    into->absorbed = more;
  }
  into->absorbed[into->n_absorbed++] = u;
  u->into = into;
  return true;
}

/* The first pointwise function that reads v and is in no other step. */
static hn_unit *function_of(const hn_lowering *l, const hn_value *v) {
  for (size_t i = 0; i < v->users.len; i++) {
    hn_unit *u = reading(l, v, i);
    if (u && !u->into && u->kind == HN_UNIT_POINTWISE) return u;
  }
  return NULL;
}

static bool is_epilogue(const hn_unit *u) {
  return u->n_in == 1 || u->op == HONE_PW_ADD || u->op == HONE_PW_MUL || u->op == HONE_PW_SUB ||
         u->op == HONE_PW_DIV;
}

/* What is against `next` as the next part of u's epilogue, which ends with v. */
static hn_miss against_epilogue(const hn_lowering *l, const hn_unit *u, const hn_value *v,
                                const hn_unit *next, bool everything) {
  hn_miss m = hn_lower_shared(l, HN_FUSION_epilogue, v, next);
  m.count = next->n_in;
  m.result = next->out;
  if (m.why != HN_MISS_NONE)
    ;
  else if (next->chain || next->n_in > 2)
    m.why = HN_MISS_OPERANDS;
  else if (next->out->desc.dtype != HONE_DTYPE_F32)
    m.why = HN_MISS_TYPE, m.value = next->out;
  else if (!hone_desc_same_dims(&next->out->desc, &u->out->desc))
    m.why = HN_MISS_SHAPE;
  else if (next->n_in == 2 && next->in[0] == next->in[1])
    m.why = HN_MISS_TWICE;
  else if (!is_epilogue(next))
    m.why = HN_MISS_FUNCTION;
  else if (next->n_in == 2 && !everything)
    m.why = HN_MISS_LEVEL, m.enable_level = 2;
  else if (u->n_absorbed == HONE_MAX_EPILOGUE)
    m.why = HN_MISS_MANY, m.count = HONE_MAX_EPILOGUE;
  return m;
}

hn_unit *hn_lower_next_function(hn_lowering *l, const hn_unit *u, const hn_value *v) {
  hn_unit *next = function_of(l, v);
  if (!next || next->n_absorbed || !hn_fuses(l->plan, HN_FUSION_epilogue)) return NULL;
  return against_epilogue(l, u, v, next, true).why == HN_MISS_NONE ? next : NULL;
}

/* A chain of pointwise readers behind an anchor, as far as shapes stay the same. Which of them become an
 * epilogue is decided by the tactics (lower.c); what they leave goes into groups. */
static bool grow_epilogue(hn_lowering *l, hn_unit *u, bool everything) {
  const hn_value *v = u->out;
  for (hn_unit *next; (next = function_of(l, v)); v = next->out) {
    const hn_miss m = against_epilogue(l, u, v, next, everything);
    if (m.why != HN_MISS_NONE) {
      hn_near(l, m, u->node, next->node);
      break;
    }
    if (!absorb(l, u, next)) return false;
  }
  return true;
}

/* An anchor whose result can have no epilogue, with an elementwise operator behind it. */
static void near_anchor(hn_lowering *l, const hn_unit *u) {
  const hn_value *v = u->out;
  const hn_miss m = {.fusion = HN_FUSION_epilogue,
                     .why = v->desc.dtype != HONE_DTYPE_F32 ? HN_MISS_TYPE : HN_MISS_UNKNOWN,
                     .value = v};
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *n = v->users.ptr[i].node;
    if (n->graph == v->graph && n->op && n->op->flags & HONE_OP_POINTWISE) {
      hn_near(l, m, u->node, n);
      return;
    }
  }
}

static bool in_group(hn_unit *const *group, uint32_t n, const hn_unit *u) {
  for (uint32_t i = 0; i < n; i++)
    if (group[i] == u) return true;
  return false;
}

/* Made by rewriting one node of the model. */
static bool same_origin(const hone_node *a, const hone_node *b) {
  return a->n_origin == b->n_origin && memcmp(a->origin, b->origin, a->n_origin * sizeof *a->origin) == 0;
}

/* The pointwise unit that makes v and is in no other step; NULL: none. */
static hn_unit *candidate(const hn_lowering *l, const hn_value *v, const hn_unit *root) {
  hn_unit *p = v->producer && v->graph == root->out->graph ? l->by_value[v->id] : NULL;
  if (!p || p->kind != HN_UNIT_POINTWISE || p->into || p->n_absorbed) return NULL;
  return l->plan->separate && !same_origin(p->node, root->node) ? NULL : p;
}

/* What is against p, which makes v, as part of the group; its program apart. */
static hn_miss against_group(const hn_lowering *l, hn_unit *const *group, uint32_t n, const hn_unit *root,
                             const hn_value *v) {
  hn_miss m = {.fusion = HN_FUSION_pointwise, .value = v, .result = root->out};
  if (v->is_output)
    m.why = HN_MISS_OUTPUT;
  else if (!hone_desc_same_dims(&v->desc, &root->out->desc))
    m.why = HN_MISS_SHAPE;
  for (size_t r = 0; r < v->users.len && m.why == HN_MISS_NONE; r++) {
    const hn_unit *ru = reading(l, v, r);
    if (ru && in_group(group, n, ru)) continue;
    m.other = v->users.ptr[r].node;
    m.why = m.other->graph == v->graph ? HN_MISS_READ : HN_MISS_BODY;
  }
  return m;
}

/* Says what did not join a group that grows no more. */
static void near_group(hn_lowering *l, hn_unit *const *group, uint32_t n, const hn_unit *root) {
  for (uint32_t k = 0; k < n && !l->plan->separate; k++)
    for (uint32_t i = 0; i < group[k]->n_in; i++) {
      const hn_value *v = group[k]->in[i];
      const hn_unit *p = candidate(l, v, root);
      if (!p || in_group(group, n, p)) continue;
      hn_miss m = against_group(l, group, n, root, v);
      if (m.why == HN_MISS_NONE)
        m.why = n == MAX_GROUP ? HN_MISS_MANY : HN_MISS_REGISTERS, m.count = MAX_GROUP;
      hn_near(l, m, p->node, group[k]->node);
    }
}

/* Puts p into the group, in graph order; false: the program would be too large. */
static bool join(hn_lowering *l, hn_unit **group, uint32_t n, hn_unit *p) {
  hn_value *in[HN_UNIT_OPERANDS + 4];
  hone_pw_program trial;
  uint32_t n_in, at = n;
  while (at > 0 && group[at - 1]->order > p->order) at--;
  memmove(group + at + 1, group + at, (n - at) * sizeof *group);
  group[at] = p;
  if (hn_pointwise_program(l, group, n + 1, in, &n_in, HN_UNIT_OPERANDS, &trial)) return true;
  memmove(group + at, group + at + 1, (n - at) * sizeof *group);
  return false;
}

/* Grows a group backwards from its root: a producer joins when all its readers are in the group and it has
 * the root's dimensions. */
static hone_status grow_group(hn_lowering *l, hn_unit *root, hone_error *error) {
  hn_unit *group[MAX_GROUP];
  uint32_t n = 1;
  group[0] = root;
  for (bool grown = true; grown && n < MAX_GROUP;) {
    grown = false;
    for (uint32_t k = 0; k < n && !grown; k++)
      for (uint32_t i = 0; i < group[k]->n_in && !grown; i++) {
        const hn_value *v = group[k]->in[i];
        hn_unit *p = candidate(l, v, root);
        grown = p && !in_group(group, n, p) && against_group(l, group, n, root, v).why == HN_MISS_NONE &&
                join(l, group, n, p);
        n += grown;
      }
  }
  near_group(l, group, n, root);
  for (uint32_t k = 0; k < n; k++)
    if (group[k] != root && !absorb(l, root, group[k]))
      return hn_fail_memory(error, sizeof *group, "lowering");
  return HONE_OK;
}

hone_status hn_lower_fuse(hn_lowering *l, hone_error *error) {
  if (l->plan->reference || l->plan->separate || l->plan->level < 1 || !hn_fuses(l->plan, HN_FUSION_epilogue))
    return HONE_OK;
  bool everything = l->plan->level >= 2;
  for (size_t i = 0; i < l->units.len; i++) {
    hn_unit *u = l->units.ptr[i];
    if (u->into || !is_anchor(u)) continue;
    if (!hn_fusable_anchor(u))
      near_anchor(l, u);
    else if (!grow_epilogue(l, u, everything))
      return hn_fail_memory(error, sizeof *u, "lowering");
  }
  return HONE_OK;
}

hone_status hn_lower_groups(hn_lowering *l, hone_error *error) {
  if (l->plan->reference || l->plan->level < 2 || !hn_fuses(l->plan, HN_FUSION_pointwise)) return HONE_OK;
  for (size_t i = l->units.len; i-- > 0;) {
    hn_unit *u = l->units.ptr[i];
    if (u->into || u->kind != HN_UNIT_POINTWISE) continue;
    hone_status status = grow_group(l, u, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}
