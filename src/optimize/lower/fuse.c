/* Epilogues and pointwise groups.
 *
 * A fused step stands at the place of its last node: all other operands are there by then, and the swallowed
 * values have no other reader, so that no order is violated. */
#include "optimize/lower/lowering.h"

#include "base/error.h"

#include <string.h>

enum { MAX_GROUP = 48 };

bool hn_fusable_anchor(const hn_unit *u) {
  if (u->kind != HN_UNIT_NODE || !u->out || u->out->desc.dtype != HONE_DTYPE_F32 ||
      !hone_desc_known(&u->out->desc))
    return false;
  return hn_anchor_named(u->anchor, u->node).epilogue;
}

/* The only unit that reads v, or NULL. A unit of several nodes may read it in more than one of them. */
static hn_unit *only_reader(const hn_lowering *l, const hn_value *v) {
  hn_unit *only = NULL;
  for (size_t i = 0; i < v->users.len && !v->is_output; i++) {
    const hone_node *n = v->users.ptr[i].node;
    if (n->graph != v->graph || !n->n_out || !n->out[0]) return NULL;
    hn_unit *u = l->by_value[n->out[0]->id];
    if (!u || u->into || (only && only != u)) return NULL;
    only = u;
  }
  /* x + x reads x twice as itself: its operand is the value, not a part of it. */
  return only && (only->n_nodes > 1 || v->users.len == 1) ? only : NULL;
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

/* A chain of pointwise readers behind an anchor, as far as shapes stay the same. Which of them become an
 * epilogue is decided by the tactics (lower.c); what they leave goes into groups. */
static bool grow_epilogue(hn_lowering *l, hn_unit *u, bool everything) {
  const hn_value *v = u->out;
  while (u->n_absorbed < HONE_MAX_EPILOGUE) {
    hn_unit *next = only_reader(l, v);
    if (!next || next->kind != HN_UNIT_POINTWISE || next->chain || next->out->desc.dtype != HONE_DTYPE_F32)
      break;
    if (!hone_desc_same_dims(&next->out->desc, &u->out->desc)) break;
    if (next->n_in == 1 ? false : next->n_in != 2) break;
    if (!everything && next->n_in == 2) break;
    if (next->n_in == 2 && next->in[0] == next->in[1]) break;
    if (next->n_in == 2 && next->op != HONE_PW_ADD && next->op != HONE_PW_MUL && next->op != HONE_PW_SUB &&
        next->op != HONE_PW_DIV)
      break;
    if (!absorb(l, u, next)) return false;
    v = next->out;
  }
  return true;
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

/* Grows a group backwards from its root: a producer joins when all its readers are in the group and it has
 * the root's dimensions. */
static hone_status grow_group(hn_lowering *l, hn_unit *root, hone_error *error) {
  hn_unit *group[MAX_GROUP];
  hn_value *in[HN_UNIT_OPERANDS + 4];
  uint32_t n = 1, n_in;
  group[0] = root;
  for (bool grown = true; grown && n < MAX_GROUP;) {
    grown = false;
    for (uint32_t k = 0; k < n && !grown; k++)
      for (uint32_t i = 0; i < group[k]->n_in && !grown; i++) {
        hn_value *v = group[k]->in[i];
        hn_unit *p = v->producer ? l->by_value[v->id] : NULL;
        if (!p || p->kind != HN_UNIT_POINTWISE || p->into || p->n_absorbed || v->is_output ||
            v->graph != root->out->graph)
          continue;
        if (l->plan->separate && !same_origin(p->node, root->node)) continue;
        if (in_group(group, n, p) || !hone_desc_same_dims(&v->desc, &root->out->desc)) continue;
        bool inside = true;
        for (size_t r = 0; r < v->users.len && inside; r++) {
          const hone_node *reader = v->users.ptr[r].node;
          hn_unit *ru = reader->graph == v->graph && reader->n_out && reader->out[0]
                            ? l->by_value[reader->out[0]->id]
                            : NULL;
          inside = ru && in_group(group, n, ru);
        }
        if (!inside) continue;
        /* Keep the group in graph order. */
        uint32_t at = n;
        while (at > 0 && group[at - 1]->order > p->order) at--;
        memmove(group + at + 1, group + at, (n - at) * sizeof *group);
        group[at] = p;
        hone_pw_program trial;
        if (!hn_pointwise_program(l, group, n + 1, in, &n_in, HN_UNIT_OPERANDS, &trial)) {
          memmove(group + at, group + at + 1, (n - at) * sizeof *group);
          continue;
        }
        n++;
        grown = true;
      }
  }
  for (uint32_t k = 0; k < n; k++)
    if (group[k] != root && !absorb(l, root, group[k]))
      return hn_fail_memory(error, sizeof *group, "lowering");
  return HONE_OK;
}

hone_status hn_lower_fuse(hn_lowering *l, hone_error *error) {
  if (l->plan->reference || l->plan->separate || l->plan->level < 1) return HONE_OK;
  bool everything = l->plan->level >= 2;
  for (size_t i = 0; i < l->units.len; i++) {
    hn_unit *u = l->units.ptr[i];
    if (!u->into && hn_fusable_anchor(u) && !grow_epilogue(l, u, everything))
      return hn_fail_memory(error, sizeof *u, "lowering");
  }
  return HONE_OK;
}

hone_status hn_lower_groups(hn_lowering *l, hone_error *error) {
  if (l->plan->reference || l->plan->level < 2) return HONE_OK;
  for (size_t i = l->units.len; i-- > 0;) {
    hn_unit *u = l->units.ptr[i];
    if (u->into || u->kind != HN_UNIT_POINTWISE) continue;
    hone_status status = grow_group(l, u, error);
    if (status != HONE_OK) return status;
  }
  return HONE_OK;
}
