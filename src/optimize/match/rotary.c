#include "optimize/match/rotary.h"

#include "optimize/match/read.h"

#include <string.h>

/* The only node that reads v; NULL when there are others. */
static hone_node *reader(const hn_value *v) {
  hone_node *n = hn_value_single_use(v) ? v->users.ptr[0].node : NULL;
  return n && n->graph == v->graph ? n : NULL;
}

/* v's producer where it is this operator and v is read once. */
static hone_node *made_by(const hn_value *v, const char *op) {
  hone_node *n = v ? v->producer : NULL;
  return n && n->graph == v->graph && hn_is_op(n, op) && n->n_in && n->in[0] && reader(v) ? n : NULL;
}

/* The value that a view shows with one more dimension of 1 at its end, or v itself. */
static hn_value *below_view(hn_value *v, hn_node_list *nodes) {
  hone_node *n = v->producer;
  if (!n || n->graph != v->graph || !n->op || !(n->op->flags & HONE_OP_VIEW) || !n->in[0] || !reader(v))
    return v;
  const hone_tensor_desc *a = &n->in[0]->desc, *b = &v->desc;
  if (a->rank < 0 || b->rank != a->rank + 1 || b->dim[a->rank] != 1 ||
      memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) != 0)
    return v;
  return hn_node_list_add(nodes, n) ? n->in[0] : v;
}

typedef struct rotated {
  hn_value *a, *b;
  bool neighbours;
} rotated;

/* What v is made of, where it is rotated. */
static bool rotated_of(hn_value *v, hn_node_list *nodes, rotated *r) {
  const int32_t rank = v->desc.rank;
  hone_node *join = made_by(v, "Concat"), *view = NULL;
  if (!join) {
    view = v->producer;
    if (!view || view->graph != v->graph || !view->op || !(view->op->flags & HONE_OP_VIEW) || !view->n_in ||
        !view->in[0] || !reader(v))
      return false;
    join = made_by(view->in[0], "Concat");
  }
  if (!join || join->n_in != 2 || !join->in[1]) return false;
  const hone_tensor_desc *d = &join->out[0]->desc;
  const int64_t axis = hone_node_int(join, "axis", 0);
  if (d->rank < 1 || (axis != -1 && axis != d->rank - 1)) return false;
  r->neighbours = view != NULL;
  if (view && (d->rank != rank + 1 || d->dim[rank] != 2 ||
               memcmp(d->dim, v->desc.dim, (size_t)(rank - 1) * sizeof *d->dim) != 0))
    return false;
  hn_value *first = join->in[0];
  r->a = join->in[1];
  if (view) first = below_view(first, nodes), r->a = below_view(r->a, nodes);
  hone_node *neg = made_by(first, "Neg");
  if (!neg) return false;
  r->b = neg->in[0];
  if (view && r->b->desc.rank > rank) r->b = below_view(r->b, nodes);
  return r->a->desc.rank == rank && r->b->desc.rank == rank && hn_node_list_add(nodes, join) &&
         hn_node_list_add(nodes, neg) && (!view || hn_node_list_add(nodes, view));
}

/* Whether `part` is every step-th place of x's last dimension from `first` on. */
static bool is_part(const hn_modes *part, const hn_modes *x, int64_t first, int64_t step) {
  const int32_t last = x->rank - 1;
  int64_t of_x, of_part;
  if (part->base != x->base || part->rank != x->rank || !hn_modes_single(x, last, &of_x) ||
      !hn_modes_single(part, last, &of_part) || part->dim[last] * 2 != x->dim[last] ||
      part->offset != x->offset + first * of_x || (part->dim[last] > 1 && of_part != step * of_x))
    return false;
  for (int32_t d = 0; d < last; d++) {
    int64_t one, other;
    if (part->dim[d] != x->dim[d] || !hn_modes_single(x, d, &one) || !hn_modes_single(part, d, &other) ||
        one != other)
      return false;
  }
  return true;
}

static void describe(const hn_modes *m, hn_strided *out) {
  *out = (hn_strided){.base = m->base, .offset = m->offset};
  out->desc = hone_desc(m->base->desc.dtype, m->rank, m->dim);
  for (int32_t d = 0; d < m->rank; d++) hn_modes_single(m, d, &out->desc.stride[d]);
  out->desc.layout = HONE_LAYOUT_STRIDED;
}

/* One place behind the other along the last dimension, and even distances along all others. */
static bool dense(const hn_modes *m) {
  int64_t stride;
  for (int32_t d = 0; d < m->rank; d++)
    if (!hn_modes_single(m, d, &stride)) return false;
  return stride == 1;
}

/* v broadcast to `like`, as far up as it can be read in place. */
static bool operand(hn_value *v, const hone_tensor_desc *like, hn_node_list *via, hn_modes *m) {
  const uint32_t nodes = via->n;
  if (v->desc.dtype != HONE_DTYPE_F32) return false;
  if (hn_modes_trace(v, NULL, via, m) && hn_modes_expand(m, like->rank, like->dim) && dense(m)) return true;
  via->n = nodes;
  return hn_modes_of(v, m) && hn_modes_expand(m, like->rank, like->dim) && dense(m);
}

/* The sum of x cos and r sin, r an operand of `turned` and x one of `straight`. */
static bool match(hone_node *add, hone_node *straight, hone_node *turned, int which_r, int which_x,
                  hn_rotary_hit *hit) {
  const hone_tensor_desc *like = &add->out[0]->desc;
  hn_value *r = turned->in[which_r], *x = straight->in[which_x], *cos = straight->in[1 - which_x],
           *sin = turned->in[1 - which_r];
  hn_node_list via = {0};
  hn_modes m[HN_ROTARY_INPUTS], a, b;
  rotated parts;
  *hit = (hn_rotary_hit){.root = add};
  if (!r || !x || !cos || !sin || !hn_same_shape(&x->desc, like) || !hn_same_shape(&r->desc, like) ||
      like->dim[like->rank - 1] % 2)
    return false;
  if (!hn_node_list_add(&hit->nodes, add) || !hn_node_list_add(&hit->nodes, straight) ||
      !hn_node_list_add(&hit->nodes, turned) || !rotated_of(r, &hit->nodes, &parts))
    return false;
  hit->neighbours = parts.neighbours;
  const int64_t half = like->dim[like->rank - 1] / 2, second = hit->neighbours ? 1 : half,
                step = hit->neighbours ? 2 : 1;
  if (!operand(x, like, &via, &m[HN_ROTARY_X]) || !hn_modes_trace(parts.a, NULL, &via, &a) ||
      !hn_modes_trace(parts.b, NULL, &via, &b) || !is_part(&a, &m[HN_ROTARY_X], 0, step) ||
      !is_part(&b, &m[HN_ROTARY_X], second, step) || !operand(cos, like, &via, &m[HN_ROTARY_COS]) ||
      !operand(sin, like, &via, &m[HN_ROTARY_SIN]))
    return false;
  for (int i = 0; i < HN_ROTARY_INPUTS; i++) describe(&m[i], &hit->in[i]);
  hn_nodes_own(&hit->nodes, &via, hit->in, HN_ROTARY_INPUTS);
  return true;
}

hn_match_result hn_rotary_match(hone_node *add, hn_rotary_hit *hit) {
  if (!hn_is_op(add, "Add") || add->n_in != 2 || !add->out[0]) return HN_MATCH_NO;
  const hone_tensor_desc *d = &add->out[0]->desc;
  if (d->dtype != HONE_DTYPE_F32 || !hone_desc_known(d) || hone_desc_count(d) < 1 || d->rank < 1)
    return HN_MATCH_NO;
  hone_node *mul[2];
  for (int i = 0; i < 2; i++) {
    mul[i] = made_by(add->in[i], "Mul");
    if (!mul[i] || mul[i]->n_in != 2 || !hn_same_shape(&add->in[i]->desc, d)) return HN_MATCH_NO;
  }
  for (int way = 0; way < 8; way++)
    if (match(add, mul[way & 1], mul[1 - (way & 1)], way >> 1 & 1, way >> 2, hit)) return HN_MATCH_YES;
  return HN_MATCH_NO;
}
