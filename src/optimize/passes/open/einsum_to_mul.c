/* Einsum(a, b)  ->  Mul of a and b, turned and reshaped to the result's order
 *
 * where every letter stays, as in outer products ("bi,bj->bij"): nothing is summed, so what remains of the
 * equation is how the operands are broadcast. */
#include "model/ops/product/equation.h"
#include "optimize/passes/common/pass.h"

static int32_t place(const hn_einsum_term *t, uint8_t label) {
  for (int32_t i = 0; i < t->n; i++)
    if (t->label[i] == label) return i;
  return -1;
}

/* Why not, or NULL. */
static const char *sums(const hn_einsum *e) {
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < e->in[k].n; i++) {
      if (place(&e->in[k], e->in[k].label[i]) < i) return "a diagonal is taken";
      if (place(&e->out, e->in[k].label[i]) < 0) return "letters are summed";
    }
  return NULL;
}

/* Operand v with its letters in the result's order, and 1 for those that it lacks. */
static hn_value *laid(hn_pass_context *ctx, hone_node *n, hn_value *v, const hn_einsum_term *t,
                      const hn_einsum_term *out) {
  int64_t perm[HONE_MAX_RANK], turned[HONE_MAX_RANK], dim[HONE_MAX_RANK];
  int32_t rank = 0;
  bool same = true;
  for (int32_t i = 0; i < out->n; i++) {
    const int32_t from = place(t, out->label[i]);
    dim[i] = from < 0 ? 1 : v->desc.dim[from];
    if (from < 0) continue;
    same = same && from == rank;
    turned[rank] = v->desc.dim[from], perm[rank++] = from;
  }
  if (!same) {
    const hone_tensor_desc like = hone_desc(v->desc.dtype, rank, turned);
    hone_node *r = hn_make_node(ctx, n, "Transpose", &v, 1, &like);
    if (!r || !hn_inherit(ctx, r, n)) return NULL;
    if (!hn_node_set_ints(r, "perm", perm, (size_t)rank)) return hn_pass_memory(ctx), NULL;
    v = r->out[0];
  }
  const hone_tensor_desc like = hone_desc(v->desc.dtype, out->n, dim);
  if (hn_same_shape(&like, &v->desc)) return v;
  hn_value *shape = hn_make_ints(ctx, v->name, dim, out->n);
  hone_node *r = shape ? hn_make_node(ctx, n, "Reshape", (hn_value *const[]){v, shape}, 2, &like) : NULL;
  return r && hn_inherit(ctx, r, n) ? r->out[0] : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  hn_einsum e;
  if (!hn_is_op(n, "Einsum") || n->n_in != 2 || !n->in[0] || !n->in[1]) return HN_PASS_NONE;
  const hone_tensor_desc *in[2] = {&n->in[0]->desc, &n->in[1]->desc}, *y = &n->out[0]->desc;
  if (!hone_desc_known(in[0]) || !hone_desc_known(in[1]) || !hone_desc_known(y)) return HN_PASS_NONE;
  if (hn_einsum_parse(n, in, 2, &e, NULL) || e.out.n > HONE_MAX_RANK) return HN_PASS_NONE;
  const char *why = sums(&e);
  if (why) return hn_pass_miss(ctx, "%s", why);
  hn_value *a = laid(ctx, n, n->in[0], &e.in[0], &e.out);
  hn_value *b = a ? laid(ctx, n, n->in[1], &e.in[1], &e.out) : NULL;
  hone_node *m = b ? hn_make_node(ctx, n, "Mul", (hn_value *const[]){a, b}, 2, y) : NULL;
  if (!m || !hn_inherit(ctx, m, n)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "a product of %d dimensions, element by element", (int)e.out.n);
  if (!hn_replace(ctx, n->out[0], m->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(einsum_to_mul) = {
    .name = "einsum_to_mul",
    .level = 2,
    .about =
        "Einsum of two operands that sums nothing -> Mul, with Transpose and Reshape where they are needed",
    .visit = visit,
    .roots = HN_ROOTS("Einsum"),
};
