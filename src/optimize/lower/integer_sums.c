/* Sums of integers that become f32 at once, as dynamic quantisation writes them:
 *
 *   s = ConvInteger(x, w, x zero, w zero) | MatMulInteger(...)
 *   f = Cast(s)          to f32
 *   y = Mul(f, scale)    one number, or one a channel
 *
 * is one unit, ConvIntegerToFloat or MatMulIntegerToFloat, with the inputs
 *   x, x zero, w, w zero, scale
 * and an epilogue as other products have it, where a tactic takes it. */
#include "optimize/lower/lowering.h"

#include "base/error.h"
#include "optimize/match/read.h"

#include <string.h>

enum { X, X_ZERO, W, W_ZERO, SCALE, INPUTS };

typedef struct found {
  const char *anchor;
  const hone_node *sums, *cast, *mul;
  hn_value *scale;
} found;

/* The only node that reads v, in the same graph; NULL when there are others. */
static const hone_node *reader(const hn_value *v) {
  if (!v || v->is_output || v->users.len != 1) return NULL;
  const hone_node *n = v->users.ptr[0].node;
  return n->graph == v->graph ? n : NULL;
}

/* One value, or one for each index of dimension `axis` of y. */
static bool scales(const hone_tensor_desc *d, const hone_tensor_desc *y, int32_t axis) {
  if (d->dtype != HONE_DTYPE_F32 || !hone_desc_known(d) || d->rank > y->rank) return false;
  if (hone_desc_count(d) == 1) return true;
  const int32_t at = axis - (y->rank - d->rank);
  return at >= 0 && d->dim[at] == y->dim[axis] && hone_desc_count(d) == y->dim[axis];
}

static bool find(const hn_unit *u, found *f) {
  const hone_node *n = u->node;
  if (u->kind != HN_UNIT_NODE || u->n_nodes != 1 || !n || n->n_out != 1) return false;
  const bool conv = hn_is_op(n, "ConvInteger");
  if (!conv && !hn_is_op(n, "MatMulInteger")) return false;
  *f = (found){
      .anchor = conv ? "ConvIntegerToFloat" : "MatMulIntegerToFloat", .sums = n, .cast = reader(n->out[0])};
  if (!f->cast || !hn_is_op(f->cast, "Cast") || f->cast->out[0]->desc.dtype != HONE_DTYPE_F32) return false;
  f->mul = reader(f->cast->out[0]);
  if (!f->mul || !hn_is_op(f->mul, "Mul")) return false;
  f->scale = f->mul->in[f->mul->in[0] == f->cast->out[0]];
  const hone_tensor_desc *y = &f->mul->out[0]->desc;
  if (f->scale == f->cast->out[0] || y->rank < 1 || !hone_desc_known(y) ||
      !hone_desc_same_dims(y, &n->out[0]->desc))
    return false;
  return scales(&f->scale->desc, y, conv ? 1 : y->rank - 1);
}

static bool make_unit(hn_lowering *l, const found *f, bool *taken) {
  hn_unit *root = l->by_value[f->mul->out[0]->id];
  hn_unit *u = HN_NEW(l->temp, hn_unit);
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, INPUTS);
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, 3);
  if (!u || !in || !nodes) return false;
  in[X] = f->sums->in[0], in[W] = f->sums->in[1], in[SCALE] = f->scale;
  in[X_ZERO] = hn_in(f->sums, 2), in[W_ZERO] = hn_in(f->sums, 3);
  nodes[0] = f->sums, nodes[1] = f->cast, nodes[2] = f->mul;
  *u = (hn_unit){.kind = HN_UNIT_NODE,
                 .anchor = f->anchor,
                 .node = f->sums,
                 .n_in = INPUTS,
                 .in = in,
                 .out = f->mul->out[0],
                 .n_nodes = 3,
                 .nodes = nodes,
                 .order = root->order};
  *taken = hn_lower_takes(l, u);
  if (!*taken) return true;
  for (int i = 0; i < 2; i++) {
    l->by_value[nodes[i]->out[0]->id]->into = root; /* for the sweep below */
    l->by_value[nodes[i]->out[0]->id] = root;
  }
  *root = *u; /* in its place in the list */
  return true;
}

hone_status hn_lower_integer_sums(hn_lowering *l, hone_error *error) {
  if (l->plan->reference || l->plan->separate || l->plan->level < 2) return HONE_OK;
  for (size_t i = 0; i < l->units.len; i++) {
    found f;
    bool taken = false;
    if (l->units.ptr[i]->into || !find(l->units.ptr[i], &f)) continue;
    if (!make_unit(l, &f, &taken)) return hn_fail_memory(error, sizeof(hn_unit), "lowering");
  }
  size_t kept = 0;
  for (size_t i = 0; i < l->units.len; i++)
    if (!l->units.ptr[i]->into) l->units.ptr[kept++] = l->units.ptr[i];
  l->units.len = kept;
  return HONE_OK;
}
