/* Mul(MatMul(q, k), c)  ->  MatMul(Mul(q, c), k)
 *
 * Where c is a constant with a number for each matrix (a head's temperature) and the scores go to a Softmax:
 * queries are fewer than scores, and attention then has nothing between its products but masks. */
#include "optimize/passes/common/pass.h"

/* Whether a Softmax reads v, perhaps behind masks, other scales and views. */
static bool goes_to_softmax(const hn_value *v) {
  for (int depth = 0; depth < 8 && hn_value_single_use(v); depth++) {
    const hone_node *n = v->users.ptr[0].node;
    if (n->graph != v->graph || !n->n_out || !n->out[0]) return false;
    if (hn_is_op(n, "Softmax")) return true;
    if (!hn_is_op(n, "Add") && !hn_is_op(n, "Mul") && !hn_is_op(n, "Div") && !hn_is_op(n, "Where") &&
        !(n->op && n->op->flags & HONE_OP_VIEW))
      return false;
    v = n->out[0];
  }
  return false;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!hn_is_op(n, "Mul") || n->n_in != 2 || !n->out[0] || n->opset < 7) return HN_PASS_NONE;
  for (uint32_t i = 0; i < 2; i++) {
    hn_value *c = n->in[i], *scores = n->in[1 - i];
    hone_node *product = scores ? scores->producer : NULL;
    if (!hn_known_desc(c) || !product || product->graph != n->graph || !hn_is_op(product, "MatMul")) continue;
    const hone_tensor_desc *d = &c->desc;
    hn_value *q = product->in[0], *k = product->in[1];
    if (d->rank < 3 || d->dim[d->rank - 1] != 1 || d->dim[d->rank - 2] != 1 || hone_desc_count(d) < 2 ||
        !hn_value_single_use(scores) || !q || !k || q->constant || k->constant || !goes_to_softmax(n->out[0]))
      continue;
    if (!hn_broadcasts_into(d, &q->desc) || !hn_same_shape(&scores->desc, &n->out[0]->desc))
      return hn_pass_miss(ctx, "the factors are not those of the queries");
    hone_node *scaled = hn_make_node(ctx, n, "Mul", (hn_value *const[]){q, c}, 2, &q->desc),
              *made = scaled ? hn_make_node(ctx, n, "MatMul", (hn_value *const[]){scaled->out[0], k}, 2,
                                            &n->out[0]->desc)
                             : NULL;
    if (!made) return hn_pass_memory(ctx);
    if (!hn_inherit(ctx, scaled, n) || !hn_inherit(ctx, made, product) || !hn_inherit(ctx, made, n))
      return HN_PASS_FAIL;
    hn_pass_hit(ctx, "queries are scaled, not scores");
    if (!hn_replace(ctx, n->out[0], made->out[0])) return HN_PASS_FAIL;
    hn_remove_unread(n, 1);
    return HN_PASS_HIT;
  }
  return HN_PASS_NONE;
}

HN_PASS(scale_queries) = {
    .name = "scale_queries",
    .level = 2,
    .about = "Mul(MatMul(q, k), constants of heads) -> MatMul(Mul(q, constants), k) before Softmax",
    .visit = visit,
    .roots = HN_ROOTS("Mul"),
};
