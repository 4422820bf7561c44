/* What merge_projections does, of a quantised model: for each of an attention's operands
 *
 *   DequantizeLinear(QuantizeLinear(MatMul(x, DequantizeLinear(W)) + b, s, z), s, z)
 *     ->  DequantizeLinear(part of QuantizeLinear(MatMul(x, DequantizeLinear([W..])) + [b..], [s..], [z..]),
 * s, z)
 *
 * The codes are the same: each column keeps its scales and zero points. A product of codes ends in codes with
 * a step a column, and attention reads its parts where they lie (lower/attention.c). */
#include "optimize/match/attention.h"
#include "optimize/passes/common/pass.h"

enum { OPERANDS = 3 };

typedef struct projection {
  hn_value *x, *w, *bias, *codes; /* bias: what is added, or NULL */
  hone_node *product, *weights, *sum, *quantise;
} projection;

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
static bool read_weights(projection *p) {
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

static bool read_projection(hn_value *y, projection *p) {
  const hone_node *d = made_by(y, "DequantizeLinear");
  *p = (projection){.codes = d ? d->in[0] : NULL};
  if (!p->codes || y->is_output || !eight_bits(p->codes) || !hn_value_single_use(p->codes) ||
      !one_step(d, p->codes->desc.dtype))
    return false;
  hone_node *q = p->quantise = made_by(p->codes, "QuantizeLinear");
  if (!q || !one_step(q, p->codes->desc.dtype) || !q->in[0] || !hn_value_single_use(q->in[0])) return false;
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
  return p->x->desc.rank >= 2 && hone_desc_known(&p->codes->desc) &&
         (!p->bias || is_row(p->bias, p->w->desc.dim[1]));
}

static bool alike(const projection *a, const projection *b) {
  return a->x == b->x && a->w->desc.dim[0] == b->w->desc.dim[0] && a->w->desc.dtype == b->w->desc.dtype &&
         a->codes->desc.dtype == b->codes->desc.dtype && !a->bias == !b->bias &&
         (!a->bias || !made_by(a->bias, "DequantizeLinear") == !made_by(b->bias, "DequantizeLinear"));
}

/* Those of the attention's operands that are projections, in its own graph, of what V is one of. Returns how
 * many. */
static uint32_t siblings(const hn_graph *graph, const hn_attention_hit *hit, projection *p) {
  projection v, all[OPERANDS];
  uint32_t n = 0;
  if (!read_projection(hit->in[OPERANDS - 1].base, &v)) return 0;
  for (uint32_t i = 0; i < OPERANDS; i++) {
    if (hit->in[i].base->graph != graph || !read_projection(hit->in[i].base, &all[n])) continue;
    bool fits = alike(&all[n], &v);
    for (uint32_t k = 0; k < n; k++) fits = fits && all[k].product != all[n].product;
    if (fits) n++;
  }
  memcpy(p, all, n * sizeof *p);
  return n;
}

/* One after the other: `rows` rows of each one's own columns; where there is one element it stands for all,
 * where there is none it is zero. */
static hn_value *join(hn_pass_context *ctx, const projection *p, uint32_t n, hn_value *const *from,
                      hone_dtype type, int64_t rows, int64_t columns) {
  const size_t size = hone_dtype_size(type);
  const hone_tensor_desc d =
      rows ? hone_desc(type, 2, (const int64_t[]){rows, columns}) : hone_desc(type, 1, &columns);
  void *room;
  hn_value *joined = hn_make_room(ctx, p->codes->name, &d, &room);
  char *to = room;
  for (int64_t r = 0; joined && r < (rows ? rows : 1); r++)
    for (uint32_t i = 0; i < n; i++) {
      const int64_t own = p[i].w->desc.dim[1];
      const char *data = from[i] ? hn_known(from[i])->data : NULL;
      const bool one = !rows && data && hone_desc_count(&from[i]->desc) == 1;
      for (int64_t c = 0; c < own; c++, to += size)
        if (data)
          memcpy(to, data + (one ? 0 : (size_t)(r * own + c)) * size, size);
        else
          memset(to, 0, size);
    }
  return joined;
}

/* Input i of a node of each. */
static hn_value *join_inputs(hn_pass_context *ctx, const projection *p, uint32_t n, hone_node *const *of,
                             uint32_t k, hone_dtype type, int64_t rows, int64_t columns) {
  hn_value *from[OPERANDS];
  for (uint32_t i = 0; i < n; i++) from[i] = hn_in(of[i], k);
  return join(ctx, p, n, from, type, rows, columns);
}

static hone_node *make(hn_pass_context *ctx, hone_node *before, const char *op, hn_value *const *in,
                       uint32_t n_in, const hone_tensor_desc *like, hone_node *const *from, uint32_t n) {
  for (uint32_t i = 0; i < n_in; i++)
    if (!in[i]) return NULL;
  hone_node *made = hn_make_node(ctx, before, op, in, n_in, like);
  for (uint32_t i = 0; made && i < n; i++)
    if (!hn_inherit(ctx, made, from[i])) return NULL;
  return made;
}

/* Of the products, the one that stands first. */
static hone_node *first_of(const projection *p, uint32_t n) {
  for (hone_node *at = p->product->graph->first; at; at = at->next)
    for (uint32_t i = 0; i < n; i++)
      if (p[i].product == at) return at;
  return NULL;
}

/* The row that is added to all columns, in f32. */
static hn_value *make_bias(hn_pass_context *ctx, hone_node *before, const projection *p, uint32_t n,
                           int64_t columns) {
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &columns);
  hn_value *own[OPERANDS];
  hone_node *of[OPERANDS];
  for (uint32_t i = 0; i < n; i++) own[i] = p[i].bias, of[i] = made_by(p[i].bias, "DequantizeLinear");
  if (!of[0]) return join(ctx, p, n, own, HONE_DTYPE_F32, 0, columns);
  hn_value *const in[] = {join_inputs(ctx, p, n, of, 0, HONE_DTYPE_I32, 0, columns),
                          join_inputs(ctx, p, n, of, 1, HONE_DTYPE_F32, 0, columns),
                          join_inputs(ctx, p, n, of, 2, HONE_DTYPE_I32, 0, columns)};
  hone_node *made = make(ctx, before, "DequantizeLinear", in, 3, &d, of, n);
  return made && hn_node_set_int(made, "axis", 0) ? made->out[0] : NULL;
}

/* The codes of all, [..., columns]. */
static hn_value *make_whole(hn_pass_context *ctx, const projection *p, uint32_t n, int64_t columns) {
  hone_node *before = first_of(p, n), *w[OPERANDS], *product[OPERANDS], *sum[OPERANDS], *q[OPERANDS];
  const int64_t rows = p->w->desc.dim[0];
  const hone_dtype type = p->w->desc.dtype, codes = p->codes->desc.dtype;
  hone_tensor_desc d = p->codes->desc,
                   matrix = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){rows, columns});
  d.dim[d.rank - 1] = columns;
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  hone_tensor_desc real = d;
  real.dtype = HONE_DTYPE_F32;
  for (uint32_t i = 0; i < n; i++)
    w[i] = p[i].weights, product[i] = p[i].product, sum[i] = p[i].sum, q[i] = p[i].quantise;
  hn_value *const weights[] = {join_inputs(ctx, p, n, w, 0, type, rows, columns),
                               join_inputs(ctx, p, n, w, 1, HONE_DTYPE_F32, 0, columns),
                               join_inputs(ctx, p, n, w, 2, type, 0, columns)};
  hone_node *made = make(ctx, before, "DequantizeLinear", weights, 3, &matrix, w, n);
  if (!made || !hn_node_set_int(made, "axis", 1)) return NULL;
  made = make(ctx, before, "MatMul", (hn_value *const[]){p->x, made->out[0]}, 2, &real, product, n);
  if (made && p->bias)
    made = make(ctx, before, "Add", (hn_value *const[]){made->out[0], make_bias(ctx, before, p, n, columns)},
                2, &real, sum, n);
  if (!made) return NULL;
  hn_value *const steps[] = {made->out[0], join_inputs(ctx, p, n, q, 1, HONE_DTYPE_F32, 0, columns),
                             join_inputs(ctx, p, n, q, 2, codes, 0, columns)};
  made = make(ctx, before, "QuantizeLinear", steps, 3, &d, q, n);
  return made && hn_node_set_int(made, "axis", d.rank - 1) ? made->out[0] : NULL;
}

static bool replace_part(hn_pass_context *ctx, const projection *p, hn_value *whole, int64_t from) {
  const int64_t last = whole->desc.rank - 1, to = from + p->w->desc.dim[1];
  hone_node *old = p->quantise;
  hn_value *start = hn_make_ints(ctx, p->codes->name, &from, 1),
           *end = hn_make_ints(ctx, p->codes->name, &to, 1),
           *axis = hn_make_ints(ctx, p->codes->name, &last, 1);
  hn_value *part = start && end && axis
                       ? hn_make_newest(ctx, old, "Slice", (hn_value *const[]){whole, start, end, axis}, 4,
                                        &p->codes->desc)
                       : NULL;
  if (!part || !hn_replace(ctx, p->codes, part)) return false;
  hn_remove_unread(old, 3);
  return true;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *softmax) {
  hn_attention_hit hit;
  hone_reason why;
  projection p[OPERANDS];
  if (!ctx->options->lowered || ctx->options->processor || !hn_is_op(softmax, "Softmax") ||
      hn_attention_match(softmax, &hit, &why) != HN_MATCH_YES)
    return HN_PASS_NONE;
  const uint32_t n = siblings(softmax->graph, &hit, p);
  int64_t columns = 0;
  if (n < 2) return HN_PASS_NONE;
  for (uint32_t i = 0; i < n; i++)
    if (__builtin_add_overflow(columns, p[i].w->desc.dim[1], &columns)) return HN_PASS_NONE;
  hn_value *whole = make_whole(ctx, p, n, columns);
  if (!whole) return hn_pass_memory(ctx);
  int64_t from = 0;
  for (uint32_t i = 0; i < n; from += p[i++].w->desc.dim[1])
    if (!replace_part(ctx, &p[i], whole, from)) return HN_PASS_FAIL;
  return hn_pass_hit(ctx, "%u products of codes with '%.80s' became one", n, p->x->name);
}

HN_PASS(merge_coded_projections) = {
    .name = "merge_coded_projections",
    .level = 2,
    .about = "xA, xB, xC of one attention in codes -> parts of x [A B C] (on accelerators)",
    .visit = visit,
    .roots = HN_ROOTS("Softmax"),
};
