/* MatMul(x, Wq) + bq, MatMul(x, Wk) + bk, MatMul(x, Wv) + bv, read by one attention
 *   ->  parts of MatMul(x, [Wq Wk Wv]) + [bq bk bv]
 *
 * Where few rows make products short, one launch with three times the columns takes little longer than each
 * of the three, and with many rows it is no slower. Attention reads its operands where they lie, so the parts
 * are not copied (where no tactic takes the attention, they are: that is rare on accelerators). On processors
 * the three take as long as the one, and weights would be copied for nothing. */
#include "optimize/match/attention.h"
#include "optimize/passes/common/pass.h"

enum { OPERANDS = 3 };

typedef struct projection {
  hn_value *x, *w, *bias, *y; /* bias may be NULL */
  hone_node *product;
} projection;

static bool is_matrix(const hn_value *w) {
  const hone_tensor *t = hn_known(w);
  return t && t->data && w->desc.rank == 2 && w->desc.dtype == HONE_DTYPE_F32;
}

static bool is_row(const hn_value *b, int64_t columns) {
  const hone_tensor *t = hn_known(b);
  return t && t->data && b->desc.rank == 1 && b->desc.dtype == HONE_DTYPE_F32 && b->desc.dim[0] == columns;
}

/* y as x W, perhaps + a row. */
static bool read_projection(hn_value *y, projection *p) {
  hone_node *n = y->producer;
  *p = (projection){.y = y};
  if (!n || n->graph != y->graph || y->is_output) return false;
  if (hn_is_op(n, "Add") && n->in[0] && n->in[1]) {
    const int row = hn_known(n->in[0]) ? 0 : 1;
    hn_value *product = n->in[1 - row];
    p->bias = n->in[row];
    if (!hn_value_single_use(product) || !hn_same_shape(&product->desc, &y->desc)) return false;
    n = product->producer;
    if (!n || n->graph != y->graph) return false;
  }
  if (!hn_is_op(n, "MatMul") || !n->in[0] || !n->in[1] || !is_matrix(n->in[1])) return false;
  p->product = n, p->x = n->in[0], p->w = n->in[1];
  return p->x->desc.rank >= 2 && hone_desc_known(&y->desc) &&
         (!p->bias || is_row(p->bias, p->w->desc.dim[1]));
}

static bool read_by_attention_alone(const hn_value *v, const hn_attention_hit *hit) {
  for (size_t i = 0; i < v->users.len; i++)
    if (!hn_node_list_has(&hit->nodes, v->users.ptr[i].node)) return false;
  return v->users.len > 0;
}

/* Those of the attention's operands that are projections, in its own graph, of what V is one of. Returns how
 * many. */
static uint32_t siblings(const hn_graph *graph, const hn_attention_hit *hit, projection *p) {
  projection v, all[OPERANDS];
  uint32_t n = 0;
  if (!read_projection(hit->in[OPERANDS - 1].base, &v)) return 0;
  for (uint32_t i = 0; i < OPERANDS; i++) {
    if (hit->in[i].base->graph != graph || !read_projection(hit->in[i].base, &all[n]) ||
        !read_by_attention_alone(all[n].y, hit))
      continue;
    bool fits = all[n].x == v.x && all[n].w->desc.dim[0] == v.w->desc.dim[0] && !all[n].bias == !v.bias;
    for (uint32_t k = 0; k < n; k++) fits = fits && all[k].product != all[n].product;
    if (fits) n++;
  }
  memcpy(p, all, n * sizeof *p);
  return n;
}

/* Columns of all weights, one after the other's. */
static hn_value *join_weights(hn_pass_context *ctx, const projection *p, uint32_t n, int64_t columns) {
  const int64_t rows = p->w->desc.dim[0];
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){rows, columns});
  void *room;
  hn_value *joined = hn_make_room(ctx, p->w->name, &d, &room);
  float *to = room;
  for (int64_t r = 0; joined && r < rows; r++)
    for (uint32_t i = 0; i < n; i++) {
      const int64_t own = p[i].w->desc.dim[1];
      memcpy(to, (const float *)hn_known(p[i].w)->data + r * own, (size_t)own * sizeof *to);
      to += own;
    }
  return joined;
}

static hn_value *join_biases(hn_pass_context *ctx, const projection *p, uint32_t n, int64_t columns) {
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &columns);
  void *room;
  hn_value *joined = hn_make_room(ctx, p->bias->name, &d, &room);
  float *to = room;
  for (uint32_t i = 0; joined && i < n; i++) {
    const int64_t own = p[i].w->desc.dim[1];
    memcpy(to, hn_known(p[i].bias)->data, (size_t)own * sizeof *to);
    to += own;
  }
  return joined;
}

/* Of the products, the one that stands first. */
static hone_node *first_of(const projection *p, uint32_t n) {
  hone_node *at = p->x->producer && p->x->producer->graph == p->product->graph ? p->x->producer
                                                                               : p->product->graph->first;
  for (; at; at = at->next)
    for (uint32_t i = 0; i < n; i++)
      if (p[i].product == at) return at;
  return NULL;
}

/* The sum of all, [..., columns]. */
static hn_value *make_whole(hn_pass_context *ctx, const projection *p, uint32_t n, int64_t columns) {
  hone_tensor_desc d = p->y->desc;
  d.dim[d.rank - 1] = columns;
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  hone_node *before = first_of(p, n);
  hn_value *w = before ? join_weights(ctx, p, n, columns) : NULL;
  hone_node *node = w ? hn_make_node(ctx, before, "MatMul", (hn_value *const[]){p->x, w}, 2, &d) : NULL;
  for (uint32_t i = 0; node && i < n; i++)
    if (!hn_inherit(ctx, node, p[i].product)) return NULL;
  if (!node || !p->bias) return node ? node->out[0] : NULL;
  hn_value *bias = join_biases(ctx, p, n, columns);
  hone_node *sum =
      bias ? hn_make_node(ctx, before, "Add", (hn_value *const[]){node->out[0], bias}, 2, &d) : NULL;
  for (uint32_t i = 0; sum && i < n; i++)
    if (!hn_inherit(ctx, sum, p[i].y->producer)) return NULL;
  return sum ? sum->out[0] : NULL;
}

static bool replace_part(hn_pass_context *ctx, const projection *p, hn_value *whole, int64_t from) {
  const int64_t last = whole->desc.rank - 1, to = from + p->w->desc.dim[1];
  hone_node *old = p->y->producer;
  hn_value *start = hn_make_ints(ctx, p->y->name, &from, 1), *end = hn_make_ints(ctx, p->y->name, &to, 1),
           *axis = hn_make_ints(ctx, p->y->name, &last, 1);
  hn_value *part =
      start && end && axis
          ? hn_make_newest(ctx, old, "Slice", (hn_value *const[]){whole, start, end, axis}, 4, &p->y->desc)
          : NULL;
  if (!part || !hn_replace(ctx, p->y, part)) return false;
  hn_remove_unread(old, 1);
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
  return hn_pass_hit(ctx, "%u products with '%.80s' became one", n, p->x->name);
}

HN_PASS(merge_projections) = {
    .name = "merge_projections",
    .level = 2,
    .about = "xA, xB, xC of one attention -> parts of x [A B C] (on accelerators)",
    .visit = visit,
    .roots = HN_ROOTS("Softmax"),
};
