#include "optimize/match/attention_mix.h"

#include "optimize/match/read.h"

#include <string.h>

/* The floats of a constant of so many elements, at any alignment. */
static bool floats(const hn_value *v, int64_t count, float *out) {
  const hone_tensor *t = hn_known(v);
  if (!t || !t->data || t->desc.dtype != HONE_DTYPE_F32 || hone_desc_count(&t->desc) != count) return false;
  memcpy(out, t->data, (size_t)count * sizeof *out);
  return true;
}

static bool of_scores(const hn_value *v, int64_t *heads) {
  const hone_tensor_desc *d = &v->desc;
  if (d->dtype != HONE_DTYPE_F32 || v->constant || !hone_desc_known(d) || d->rank < 3) return false;
  *heads = d->dim[d->rank - 3];
  return *heads > 1 && *heads <= HN_MIX_HEADS;
}

/* Conv of [batch, heads, rows, keys] by one pixel. */
static bool convolution(const hone_node *n, hn_head_mix *mix, hn_value **from) {
  hn_value *x = hn_in(n, 0), *w = hn_in(n, 1), *b = hn_in(n, 2);
  int64_t heads;
  if (!x || !w || x->desc.rank != 4 || !of_scores(x, &heads) || !hn_same_shape(&x->desc, &n->out[0]->desc))
    return false;
  const hone_tensor_desc *d = &w->desc;
  if (d->rank != 4 || d->dim[0] != heads || d->dim[1] != heads || d->dim[2] != 1 || d->dim[3] != 1)
    return false; /* of one group, and as nothing is padded or left out the shapes are the same */
  size_t count;
  const int64_t *p = hone_node_ints(n, "pads", &count);
  for (size_t i = 0; p && i < count; i++)
    if (p[i]) return false;
  float *sum = mix->factor + heads * heads;
  memset(sum, 0, (size_t)heads * sizeof *sum);
  if (!floats(w, heads * heads, mix->factor) || (b && !floats(b, heads, sum))) return false;
  mix->heads = (uint32_t)heads;
  *from = x;
  return true;
}

static const int64_t *permutation(const hone_node *n, int32_t rank) {
  size_t count;
  const int64_t *p = hn_is_op(n, "Transpose") ? hone_node_ints(n, "perm", &count) : NULL;
  if (!p || count != (size_t)rank) return NULL;
  for (int32_t i = 0; i < rank; i++)
    if (p[i] < 0 || p[i] >= rank) return NULL;
  return p;
}

/* Behind `back`: [heads] added to a product by [heads, heads], of what a Transpose makes whose last axis are
 * the heads and whose order `back` undoes. */
static bool product(hone_node *back, hn_head_mix *mix, hn_node_list *nodes, hn_value **from) {
  hone_node *way[4] = {back, NULL, NULL, NULL};
  uint32_t steps = 1;
  const hn_value *added = NULL;
  hn_value *v = back->in[0];
  const hone_node *n = v ? v->producer : NULL;
  if (n && hn_is_op(n, "Add") && hn_value_single_use(v)) {
    const int at = hn_in(n, 0) && n->in[0]->constant ? 0 : 1;
    added = hn_in(n, (uint32_t)at);
    way[steps++] = (hone_node *)(uintptr_t)n;
    v = hn_in(n, (uint32_t)(1 - at));
    n = v ? v->producer : NULL;
  }
  if (!n || !hn_is_op(n, "MatMul") || !hn_value_single_use(v) || !n->in[0] || !n->in[1]) return false;
  const hn_value *w = n->in[1];
  way[steps++] = (hone_node *)(uintptr_t)n;
  hone_node *there = n->in[0]->producer;
  int64_t heads;
  if (!there || !hn_is_op(there, "Transpose") || !hn_value_single_use(n->in[0]) || !there->in[0] ||
      !of_scores(there->in[0], &heads))
    return false;
  way[steps++] = there;
  hn_value *x = there->in[0];
  const int32_t rank = x->desc.rank;
  const int64_t *p = permutation(there, rank), *q = permutation(back, rank);
  if (!p || !q || p[rank - 1] != rank - 3) return false;
  for (int32_t i = 0; i < rank; i++)
    if (p[q[i]] != i) return false;
  float turned[HN_MIX_HEADS * HN_MIX_HEADS], *sum = mix->factor + heads * heads;
  if (w->desc.rank != 2 || w->desc.dim[0] != heads || w->desc.dim[1] != heads ||
      !floats(w, heads * heads, turned))
    return false;
  memset(sum, 0, (size_t)heads * sizeof *sum);
  if (added && (added->desc.rank != 1 || !floats(added, heads, sum))) return false;
  for (int64_t o = 0; o < heads; o++)
    for (int64_t i = 0; i < heads; i++) mix->factor[o * heads + i] = turned[i * heads + o];
  for (uint32_t i = 0; nodes && i < steps; i++)
    if (!hn_node_list_add(nodes, way[i])) return false;
  mix->heads = (uint32_t)heads;
  *from = x;
  return true;
}

bool hn_head_mix_above(const hn_value *v, hn_head_mix *mix, hn_node_list *nodes, hn_value **from) {
  hone_node *n = v ? v->producer : NULL;
  if (!n || n->graph != v->graph || n->domain[0] || n->n_out < 1 || n->out[0] != v || !n->n_in) return false;
  if (hn_is_op(n, "Transpose")) return product(n, mix, nodes, from);
  return hn_is_op(n, "Conv") && convolution(n, mix, from) && (!nodes || hn_node_list_add(nodes, n));
}

hn_value *hn_head_mix_below(const hn_value *v, hn_head_mix *mix, hn_node_list *nodes) {
  enum { LONGEST = 4 };
  const hn_value *at = v;
  for (int i = 0; i < LONGEST; i++) {
    const hone_node *n = hn_value_single_use(at) ? at->users.ptr[0].node : NULL;
    if (!n || n->graph != v->graph || !n->n_out || !n->out[0]) return NULL;
    hn_value *from = NULL;
    at = n->out[0];
    if (hn_head_mix_above(at, mix, NULL, &from) && from == v)
      return hn_head_mix_above(at, mix, nodes, &from) ? n->out[0] : NULL;
  }
  return NULL;
}
