/* MatMul(v, Transpose(p))  ->  Transpose(MatMul(p, Transpose(v)))     p = Softmax(...)
 *
 * As attention over pixels of channels-first maps weighs its values: channels by keys, from the left. With
 * the weights on the left it is attention as lowering knows it, and both Transposes are between channels
 * first and last (turn_pixels). */
#include "optimize/passes/common/pass.h"

/* The last two dimensions change places. */
static bool swaps_last(const hone_node *n) {
  size_t rank;
  const int64_t *perm = hone_node_ints(n, "perm", &rank);
  if (!hn_is_op(n, "Transpose") || rank < 2) return false;
  for (size_t i = 0; i + 2 < rank; i++)
    if (perm[i] != (int64_t)i) return false;
  return perm[rank - 2] == (int64_t)rank - 1 && perm[rank - 1] == (int64_t)rank - 2;
}

static hn_value *swapped(hn_pass_context *ctx, hone_node *before, hn_value *v) {
  const int32_t rank = v->desc.rank;
  int64_t perm[HONE_MAX_RANK];
  hone_tensor_desc like = v->desc;
  for (int32_t i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  like.dim[rank - 1] = v->desc.dim[rank - 2], like.dim[rank - 2] = v->desc.dim[rank - 1];
  hone_node *n = hn_make_node(ctx, before, "Transpose", &v, 1, &like);
  if (!n || !hn_node_set_ints(n, "perm", perm, (size_t)rank)) return hn_pass_memory(ctx), NULL;
  return hn_inherit(ctx, n, before) ? n->out[0] : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!hn_is_op(n, "MatMul") || n->n_in != 2 || !n->in[0] || !n->in[1] || !n->out[0]) return HN_PASS_NONE;
  hn_value *v = n->in[0];
  hone_node *t = n->in[1]->producer, *softmax;
  if (!t || t->graph != n->graph || !swaps_last(t) || !hn_value_single_use(t->out[0])) return HN_PASS_NONE;
  hn_value *p = t->in[0];
  softmax = p->producer;
  if (!softmax || softmax->graph != n->graph || !hn_is_op(softmax, "Softmax") || !hn_value_single_use(p) ||
      v->constant)
    return HN_PASS_NONE;
  if (!hone_desc_known(&v->desc) || !hone_desc_known(&p->desc) || v->desc.rank != p->desc.rank)
    return hn_pass_miss(ctx, "the shapes of values and weights are not known, or differ in rank");
  hone_tensor_desc like = n->out[0]->desc;
  const int32_t rank = like.rank;
  like.dim[rank - 1] = n->out[0]->desc.dim[rank - 2], like.dim[rank - 2] = n->out[0]->desc.dim[rank - 1];
  hn_value *turned = swapped(ctx, n, v);
  hone_node *product =
      turned ? hn_make_node(ctx, n, "MatMul", (hn_value *const[]){p, turned}, 2, &like) : NULL;
  if (!product) return HN_PASS_FAIL;
  if (!hn_inherit(ctx, product, n)) return HN_PASS_FAIL;
  hn_value *y = swapped(ctx, n, product->out[0]);
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "weights stand on the left");
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

HN_PASS(weigh_values) = {
    .name = "weigh_values",
    .level = 2,
    .about = "MatMul(v, Transpose(Softmax)) -> Transpose(MatMul(Softmax, Transpose(v)))",
    .visit = visit,
    .roots = HN_ROOTS("MatMul"),
};
