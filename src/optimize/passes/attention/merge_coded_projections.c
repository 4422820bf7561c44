/* What merge_projections does, of a quantised model: for each of an attention's operands
 *
 *   DequantizeLinear(QuantizeLinear(MatMul(x, DequantizeLinear(W)) + b, s, z), s, z)
 *     ->  DequantizeLinear(part of C, s, z)
 *
 * where C = QuantizeLinear(MatMul(x, DequantizeLinear([W..])) + [b..], [s..], [z..]).
 *
 * The codes are the same: each column keeps its scales and zero points. A product of codes ends in codes with
 * a step a column, and attention reads its parts where they lie (lower/attention.c). */
#include "optimize/passes/attention/projections.h"

static bool eight_bits(const hn_value *v) {
  return v->desc.dtype == HONE_DTYPE_U8 || v->desc.dtype == HONE_DTYPE_I8;
}

static const hone_tensor *known(const hn_value *v, hone_dtype type) {
  const hone_tensor *t = hn_known(v);
  return t && t->data && v->desc.dtype == type ? t : NULL;
}

/* One number, or one for each of n. */
static bool one_or(const hn_value *v, hone_dtype type, int64_t n) {
  const hone_tensor *t = known(v, type);
  const int64_t count = t ? hone_desc_count(&v->desc) : 0;
  return t && (count == 1 || (count == n && v->desc.rank == 1));
}

static hone_node *made_by(const hn_value *v, const char *op) {
  hone_node *n = v ? v->producer : NULL;
  return n && n->graph == v->graph && hn_is_op(n, op) && n->out[0] == v ? n : NULL;
}

/* Codes with one scale, and a zero point which says their type. */
static bool one_step(const hone_node *n, hone_dtype type) {
  return n->n_in == 3 && n->in[1] && n->in[2] && one_or(n->in[1], HONE_DTYPE_F32, 1) &&
         one_or(n->in[2], type, 1);
}

/* Constant i8 or u8 [K, N] with a scale and zero point for all, or a column each. */
static bool read_weights(hn_projection *p) {
  hone_node *n = p->weights = made_by(p->product->in[1], "DequantizeLinear");
  if (!n || n->n_in < 2 || !n->in[0] || !n->in[1] || hone_node_int(n, "block_size", 0)) return false;
  p->w = n->in[0];
  if (!eight_bits(p->w) || !known(p->w, p->w->desc.dtype) || p->w->desc.rank != 2) return false;
  const int64_t columns = p->w->desc.dim[1], axis = hone_node_int(n, "axis", 1);
  if (hone_desc_count(&n->in[1]->desc) != 1 && axis != 1 && axis != -1) return false;
  return one_or(n->in[1], HONE_DTYPE_F32, columns) &&
         (!hn_in(n, 2) || one_or(n->in[2], p->w->desc.dtype, columns));
}

/* A row in f32, or one of i32 dequantised by a scale for all, or a column each. */
static bool is_row(hn_value *b, int64_t columns) {
  if (b->desc.rank != 1 || b->desc.dim[0] != columns) return false;
  const hone_node *n = made_by(b, "DequantizeLinear");
  if (!n) return known(b, HONE_DTYPE_F32) != NULL;
  return n->in[0] && n->in[1] && known(n->in[0], HONE_DTYPE_I32) &&
         one_or(n->in[1], HONE_DTYPE_F32, columns) &&
         (!hn_in(n, 2) || one_or(n->in[2], HONE_DTYPE_I32, columns));
}

/* Others may read what is dequantised: they read the part, too. */
static bool read_projection(hn_value *operand, const hn_attention_hit *hit, hn_projection *p) {
  (void)hit;
  const hone_node *d = made_by(operand, "DequantizeLinear");
  hn_value *codes = d ? d->in[0] : NULL;
  *p = (hn_projection){.y = codes};
  if (!codes || operand->is_output || !eight_bits(codes) || !hn_value_single_use(codes) ||
      !one_step(d, codes->desc.dtype))
    return false;
  const hone_node *q = made_by(codes, "QuantizeLinear");
  if (!q || !one_step(q, codes->desc.dtype) || !q->in[0] || !hn_value_single_use(q->in[0])) return false;
  hn_value *v = q->in[0];
  hone_node *n = p->sum = made_by(v, "Add");
  if (n && n->in[0] && n->in[1]) {
    const int row = n->in[0]->desc.rank == 1 ? 0 : 1;
    p->bias = n->in[row], v = n->in[1 - row];
    if (!hn_value_single_use(v) || !hn_same_shape(&v->desc, &n->out[0]->desc)) return false;
  }
  n = p->product = made_by(v, "MatMul");
  if (!n || !n->in[0] || !n->in[1] || !read_weights(p)) return false;
  p->x = n->in[0];
  return p->x->desc.rank >= 2 && hone_desc_known(&codes->desc) &&
         (!p->bias || is_row(p->bias, p->w->desc.dim[1]));
}

static bool alike(const hn_projection *a, const hn_projection *b) {
  return a->w->desc.dtype == b->w->desc.dtype && a->y->desc.dtype == b->y->desc.dtype &&
         (!a->bias || !made_by(a->bias, "DequantizeLinear") == !made_by(b->bias, "DequantizeLinear"));
}

/* Input k of a node of each. */
static hn_value *join_inputs(hn_pass_context *ctx, const hn_projection *p, uint32_t n, hone_node *const *of,
                             uint32_t k, hone_dtype type, int64_t rows, int64_t columns) {
  hn_value *from[HN_PROJECTIONS];
  for (uint32_t i = 0; i < n; i++) from[i] = hn_in(of[i], k);
  return hn_projections_join(ctx, p, n, from, type, rows, columns);
}

/* The row that is added to all columns, in f32. */
static hn_value *make_bias(hn_pass_context *ctx, hone_node *before, const hn_projection *p, uint32_t n,
                           int64_t columns) {
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &columns);
  hn_value *own[HN_PROJECTIONS];
  hone_node *of[HN_PROJECTIONS];
  for (uint32_t i = 0; i < n; i++) own[i] = p[i].bias, of[i] = made_by(p[i].bias, "DequantizeLinear");
  if (!of[0]) return hn_projections_join(ctx, p, n, own, HONE_DTYPE_F32, 0, columns);
  hn_value *const in[] = {join_inputs(ctx, p, n, of, 0, HONE_DTYPE_I32, 0, columns),
                          join_inputs(ctx, p, n, of, 1, HONE_DTYPE_F32, 0, columns),
                          join_inputs(ctx, p, n, of, 2, HONE_DTYPE_I32, 0, columns)};
  hone_node *made = hn_projections_node(ctx, before, "DequantizeLinear", in, 3, &d, of, n);
  return made && hn_node_set_int(made, "axis", 0) ? made->out[0] : NULL;
}

/* The codes of all, [..., columns]. */
static hn_value *make_whole(hn_pass_context *ctx, const hn_projection *p, uint32_t n, int64_t columns) {
  hone_node *before = hn_projections_first(p, n), *w[HN_PROJECTIONS], *product[HN_PROJECTIONS],
            *sum[HN_PROJECTIONS], *q[HN_PROJECTIONS];
  const int64_t rows = p->w->desc.dim[0];
  const hone_dtype type = p->w->desc.dtype, codes = p->y->desc.dtype;
  const hone_tensor_desc d = hn_projections_desc(p, codes, columns),
                         real = hn_projections_desc(p, HONE_DTYPE_F32, columns),
                         matrix = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){rows, columns});
  for (uint32_t i = 0; i < n; i++)
    w[i] = p[i].weights, product[i] = p[i].product, sum[i] = p[i].sum, q[i] = p[i].y->producer;
  hn_value *const weights[] = {join_inputs(ctx, p, n, w, 0, type, rows, columns),
                               join_inputs(ctx, p, n, w, 1, HONE_DTYPE_F32, 0, columns),
                               join_inputs(ctx, p, n, w, 2, type, 0, columns)};
  hone_node *made = hn_projections_node(ctx, before, "DequantizeLinear", weights, 3, &matrix, w, n);
  if (!made || !hn_node_set_int(made, "axis", 1)) return NULL;
  made = hn_projections_node(ctx, before, "MatMul", (hn_value *const[]){p->x, made->out[0]}, 2, &real,
                             product, n);
  if (made && p->bias)
    made = hn_projections_node(ctx, before, "Add",
                               (hn_value *const[]){made->out[0], make_bias(ctx, before, p, n, columns)}, 2,
                               &real, sum, n);
  if (!made) return NULL;
  hn_value *const steps[] = {made->out[0], join_inputs(ctx, p, n, q, 1, HONE_DTYPE_F32, 0, columns),
                             join_inputs(ctx, p, n, q, 2, codes, 0, columns)};
  made = hn_projections_node(ctx, before, "QuantizeLinear", steps, 3, &d, q, n);
  return made && hn_node_set_int(made, "axis", d.rank - 1) ? made->out[0] : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *softmax) {
  static const hn_projection_form form = {read_projection, alike, make_whole, 3, "products of codes"};
  return hn_merge_projections(ctx, softmax, &form);
}

HN_PASS(merge_coded_projections) = {
    .name = "merge_coded_projections",
    .level = 2,
    .about = "xA, xB, xC of one attention in codes -> parts of x [A B C] (on accelerators)",
    .visit = visit,
    .roots = HN_ROOTS("Softmax"),
};
