/* MatMul(x, Wq) + bq, MatMul(x, Wk) + bk, MatMul(x, Wv) + bv, read by one attention
 *   ->  parts of MatMul(x, [Wq Wk Wv]) + [bq bk bv]
 *
 * Where few rows make products short, one launch with three times the columns takes little longer than each
 * of the three, and with many rows it is no slower. Attention reads its operands where they lie, so the parts
 * are not copied (where no tactic takes the attention, they are: that is rare on accelerators). On processors
 * the three take as long as the one, and weights would be copied for nothing. */
#include "optimize/passes/attention/projections.h"

static bool is_matrix(const hn_value *w) {
  const hone_tensor *t = hn_known(w);
  return t && t->data && w->desc.rank == 2 && w->desc.dtype == HONE_DTYPE_F32;
}

static bool is_row(const hn_value *b, int64_t columns) {
  const hone_tensor *t = hn_known(b);
  return t && t->data && b->desc.rank == 1 && b->desc.dtype == HONE_DTYPE_F32 && b->desc.dim[0] == columns;
}

static bool read_by_attention_alone(const hn_value *v, const hn_attention_hit *hit) {
  for (size_t i = 0; i < v->users.len; i++)
    if (!hn_node_list_has(&hit->nodes, v->users.ptr[i].node)) return false;
  return v->users.len > 0;
}

/* y as x W, perhaps + a row. */
static bool read_projection(hn_value *y, const hn_attention_hit *hit, hn_projection *p) {
  hone_node *n = y->producer;
  *p = (hn_projection){.y = y};
  if (!n || n->graph != y->graph || y->is_output || !read_by_attention_alone(y, hit)) return false;
  if (hn_is_op(n, "Add") && n->in[0] && n->in[1]) {
    const int row = hn_known(n->in[0]) ? 0 : 1;
    hn_value *product = n->in[1 - row];
    p->sum = n, p->bias = n->in[row];
    if (!hn_value_single_use(product) || !hn_same_shape(&product->desc, &y->desc)) return false;
    n = product->producer;
    if (!n || n->graph != y->graph) return false;
  }
  if (!hn_is_op(n, "MatMul") || !n->in[0] || !n->in[1] || !is_matrix(n->in[1])) return false;
  p->product = n, p->x = n->in[0], p->w = n->in[1];
  return p->x->desc.rank >= 2 && hone_desc_known(&y->desc) &&
         (!p->bias || is_row(p->bias, p->w->desc.dim[1]));
}

/* The sum of all, [..., columns]. */
static hn_value *make_whole(hn_pass_context *ctx, const hn_projection *p, uint32_t n, int64_t columns) {
  const hone_tensor_desc d = hn_projections_desc(p, HONE_DTYPE_F32, columns);
  hone_node *before = hn_projections_first(p, n), *product[HN_PROJECTIONS], *sum[HN_PROJECTIONS];
  hn_value *w[HN_PROJECTIONS], *bias[HN_PROJECTIONS];
  for (uint32_t i = 0; i < n; i++)
    product[i] = p[i].product, sum[i] = p[i].sum, w[i] = p[i].w, bias[i] = p[i].bias;
  hn_value *const factors[] = {p->x,
                               hn_projections_join(ctx, p, n, w, HONE_DTYPE_F32, p->w->desc.dim[0], columns)};
  hone_node *made = hn_projections_node(ctx, before, "MatMul", factors, 2, &d, product, n);
  if (made && p->bias) {
    hn_value *const terms[] = {made->out[0],
                               hn_projections_join(ctx, p, n, bias, HONE_DTYPE_F32, 0, columns)};
    made = hn_projections_node(ctx, before, "Add", terms, 2, &d, sum, n);
  }
  return made ? made->out[0] : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *softmax) {
  static const hn_projection_form form = {read_projection, NULL, make_whole, 1, "products"};
  return hn_merge_projections(ctx, softmax, &form);
}

HN_PASS(merge_projections) = {
    .name = "merge_projections",
    .level = 2,
    .about = "xA, xB, xC of one attention -> parts of x [A B C] (on accelerators)",
    .visit = visit,
    .roots = HN_ROOTS("Softmax"),
};
