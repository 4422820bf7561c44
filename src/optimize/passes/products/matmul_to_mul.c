/* MatMul(a, b)  ->  Mul(a, b)         a is [..., M, 1], b is [..., 1, N]
 *
 * Sums of one product: outer products, as of states that remember keys and values, and layers of one input.
 * Mul broadcasts to the same shape, and many small matrices are one pointwise step. */
#include "optimize/passes/common/pass.h"

/* Weights of attention over a single key: what finds attention reads the MatMul. */
static bool of_softmax(const hn_value *v) {
  const hone_node *p = v->producer;
  if (p && hn_is_op(p, "Where") && p->n_in == 3) p = p->in[2]->producer;
  return p && hn_is_op(p, "Softmax");
}

static bool of_codes(const hn_value *v) { return v->producer && hn_is_op(v->producer, "DequantizeLinear"); }

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!hn_is_op(n, "MatMul") || n->n_in != 2 || !n->in[0] || !n->in[1]) return HN_PASS_NONE;
  hn_value *a = n->in[0], *b = n->in[1];
  if (a->desc.rank < 2 || b->desc.rank < 2 || a->desc.dim[a->desc.rank - 1] != 1 ||
      b->desc.dim[b->desc.rank - 2] != 1)
    return HN_PASS_NONE;
  if (!hone_dtype_is_float(a->desc.dtype)) return hn_pass_miss(ctx, "the operands are integers");
  if (!hone_desc_known(&a->desc) || !hone_desc_known(&b->desc) || !hone_desc_known(&n->out[0]->desc))
    return hn_pass_miss(ctx, "shapes are not known");
  if (n->opset < 7) return hn_pass_miss(ctx, "Mul of opset %d does not broadcast by itself", (int)n->opset);
  if (of_softmax(a)) return hn_pass_miss(ctx, "it is a part of attention");
  if (of_codes(a) || of_codes(b)) return hn_pass_miss(ctx, "an operand is codes");
  hone_node *m = hn_make_node(ctx, n, "Mul", (hn_value *const[]){a, b}, 2, &n->out[0]->desc);
  if (!m || !hn_inherit(ctx, m, n)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "a sum of one product");
  if (!hn_replace(ctx, n->out[0], m->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(matmul_to_mul) = {
    .name = "matmul_to_mul",
    .level = 2,
    .about = "MatMul of [..., M, 1] and [..., 1, N] -> Mul",
    .visit = visit,
    .roots = HN_ROOTS("MatMul"),
};
