/* Norms between codes, as transformers have them between their products:
 *
 *   y = QuantizeLinear(LayerNormalization(DequantizeLinear(x), scale, shift))
 *
 * is one unit, QLinearLayerNormalization (qlinear.h), also where only one side has codes, where a tactic
 * takes it. What is dequantised may have other readers, the norm's result has none. */
#include "optimize/lower/codes.h"

#include "base/error.h"
#include "optimize/match/read.h"
#include "optimize/step/qlinear.h"

#include <string.h>

typedef struct found {
  const hone_node *node, *x, *quantise; /* x, quantise: NULL where there are floats */
} found;

/* Made by DequantizeLinear, which qdq.c takes away from nodes that are said to read codes. */
static bool is_dequantised(const hn_value *v) { return v && hn_is_op(v->producer, "DequantizeLinear"); }

static bool find(const hn_unit *u, found *f) {
  const hone_node *n = u->node;
  if (u->into || u->kind != HN_UNIT_NODE || u->n_nodes != 1 || !hn_is_op(n, "LayerNormalization") ||
      strcmp(u->anchor, "LayerNormalization") != 0 || !n->n_out || !n->out[0])
    return false;
  for (uint32_t i = 1; i < n->n_out; i++)
    if (n->out[i]) return false;
  const hone_node *next = hn_only_reader(n->out[0]);
  *f = (found){n, hn_of_codes(n->in[0]), hn_to_codes(next) ? next : NULL};
  /* What the unit would read as floats has to stay a step. */
  if ((!f->x && is_dequantised(n->in[0])) || is_dequantised(hn_in(n, 1)) || is_dequantised(hn_in(n, 2)))
    return false;
  return f->x || f->quantise;
}

static bool make_unit(hn_lowering *l, hn_unit *at, const found *f, bool *taken) {
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, HN_QNORM_INPUTS);
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, 2), *n = f->node, *q = f->quantise;
  hn_unit *u = HN_NEW(l->temp, hn_unit), *root = q ? l->by_value[q->out[0]->id] : at;
  if (!in || !nodes || !u) return false;
  in[HN_QNORM_X] = f->x ? f->x->in[0] : n->in[0];
  if (f->x) in[HN_QNORM_X_SCALE] = f->x->in[1], in[HN_QNORM_X_ZERO] = hn_quantise_zero(f->x);
  in[HN_QNORM_SCALE] = hn_in(n, 1), in[HN_QNORM_SHIFT] = hn_in(n, 2);
  if (q) in[HN_QNORM_Y_SCALE] = q->in[1], in[HN_QNORM_Y_ZERO] = hn_quantise_zero(q);
  nodes[0] = n, nodes[1] = q;
  *u = (hn_unit){.kind = HN_UNIT_NODE,
                 .anchor = "QLinearLayerNormalization",
                 .node = n,
                 .n_in = HN_QNORM_INPUTS,
                 .in = in,
                 .out = (q ? q : n)->out[0],
                 .n_nodes = q ? 2 : 1,
                 .nodes = nodes,
                 .order = root->order};
  *taken = !root->into && root->n_nodes == 1 && hn_lower_takes(l, u);
  if (!*taken) return true;
  if (q) at->into = root, l->by_value[n->out[0]->id] = root; /* for the sweep in qdq.c */
  *root = *u;
  return true;
}

hone_status hn_lower_codes_norms(hn_lowering *l, bool *integer, bool *any, hone_error *error) {
  for (size_t i = 0; i < l->units.len; i++) {
    found f;
    bool taken = false;
    if (!find(l->units.ptr[i], &f)) continue;
    if (!make_unit(l, l->units.ptr[i], &f, &taken)) return hn_fail_memory(error, sizeof(hn_unit), "lowering");
    if (!taken) continue;
    integer[f.node->out[0]->id] = *any = true;
    if (f.quantise) integer[f.quantise->out[0]->id] = true;
  }
  return HONE_OK;
}
