/* f(V(a), c)     ->  V(f(a, c'))        V: Reshape, Flatten, Squeeze or Unsqueeze of what a product made
 * f(V(a), V(b))  ->  V(f(a, b))
 *
 * For elementwise f. Converters put a view between a product and its bias or function (Squeeze behind a
 * convolution that stands for one of a dimension less, Reshape behind a product of rows): steps take what
 * reads the product itself as their epilogue. A constant c has to vary along the last dimension alone, which
 * V keeps, or V to remove and add nothing but dimensions of 1, which c' then has where c had them. */
#include "optimize/passes/common/elementwise.h"
#include "optimize/passes/common/pass.h"

static bool is_view(const hone_node *n) {
  return hn_is_op(n, "Reshape") || hn_is_op(n, "Flatten") || hn_is_op(n, "Squeeze") ||
         hn_is_op(n, "Unsqueeze");
}

/* Made by a product, or by what this pass moved behind one. */
static bool is_of_product(const hn_value *v) {
  static const char *const ops[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
  const hone_node *n = v->producer;
  for (size_t i = 0; n && i < sizeof ops / sizeof *ops; i++)
    if (hn_is_op(n, ops[i])) return true;
  return n && hn_is_elementwise(n);
}

static bool at_least_known(const hone_tensor_desc *d) {
  for (int32_t i = 0; i < d->rank; i++)
    if (d->dim[i] < 0) return false;
  return d->rank >= 0;
}

/* The dimensions by which a constant of the descriptor c, which broadcasts against y, broadcasts against x
 * the same way, where y is x without or with some dimensions of 1. */
static bool without_ones(const hone_tensor_desc *c, const hone_tensor_desc *x, const hone_tensor_desc *y,
                         hone_tensor_desc *out) {
  int32_t i = 0, k = 0;
  *out = *c;
  out->rank = x->rank;
  if (!at_least_known(x) || !at_least_known(y) || c->rank > y->rank) return false;
  while (i < x->rank || k < y->rank) {
    const int32_t at = k - (y->rank - c->rank);
    const int64_t n = k < y->rank && at >= 0 ? c->dim[at] : 1;
    if (i < x->rank && k < y->rank && x->dim[i] == y->dim[k])
      out->dim[i++] = n, k++;
    else if (i < x->rank && x->dim[i] == 1)
      out->dim[i++] = 1;
    else if (k < y->rank && y->dim[k] == 1 && n == 1)
      k++;
    else
      return false;
  }
  return true;
}

typedef enum fit { FITS, FITS_RESHAPED, NO_FIT } fit;

static fit fits(const hn_value *c, const hone_tensor_desc *x, const hone_tensor_desc *y,
                hone_tensor_desc *to) {
  const hone_tensor *t = hn_known_desc(c);
  if (!t) return NO_FIT;
  const hone_tensor_desc *d = &t->desc;
  const int64_t count = hone_desc_count(d);
  if (d->rank <= 1 && d->rank <= x->rank &&
      (count == 1 ||
       (x->rank > 0 && y->rank > 0 && x->dim[x->rank - 1] == count && y->dim[y->rank - 1] == count)))
    return FITS;
  if (without_ones(d, x, y, to)) return FITS_RESHAPED;
  return NO_FIT;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  enum { MAX_IN = 8 };
  if (!hn_is_elementwise(n) || n->n_in > MAX_IN || n->opset < 7) return HN_PASS_NONE;
  hone_node *first = NULL;
  hn_value *in[MAX_IN];
  hone_tensor_desc to[MAX_IN];
  bool made[MAX_IN] = {false};
  for (uint32_t i = 0; i < n->n_in; i++) {
    hn_value *v = n->in[i];
    hone_node *t = v ? v->producer : NULL;
    if (!t || !is_view(t) || t->graph != n->graph || !t->in[0]) continue;
    if (!first && (!is_of_product(t->in[0]) || t->in[0]->desc.rank < 0 || v->desc.rank < 0))
      return HN_PASS_NONE;
    if (first && !(hn_same_shape(&t->in[0]->desc, &first->in[0]->desc) &&
                   hn_same_shape(&v->desc, &first->out[0]->desc)))
      return HN_PASS_NONE;
    if (!first) first = t;
  }
  if (!first || !hn_same_shape(&n->out[0]->desc, &first->out[0]->desc)) return HN_PASS_NONE;
  const hone_tensor_desc *x = &first->in[0]->desc, *y = &first->out[0]->desc;
  for (uint32_t i = 0; i < n->n_in; i++) {
    hn_value *v = in[i] = n->in[i];
    if (!v) continue;
    if (v->producer && is_view(v->producer) && v->producer->graph == n->graph && v->producer->in[0] &&
        !v->constant) {
      in[i] = v->producer->in[0];
      continue;
    }
    const fit f = fits(v, x, y, &to[i]);
    if (f == NO_FIT) return HN_PASS_NONE;
    made[i] = f == FITS_RESHAPED;
    if (made[i] && !hn_known(v)) return HN_PASS_NONE;
  }
  for (uint32_t i = 0; i < n->n_in; i++)
    if (made[i] && !(in[i] = hn_make_constant(ctx, n->in[i]->name, &to[i], hn_known(n->in[i])->data)))
      return HN_PASS_FAIL;
  hone_tensor_desc like = *x;
  like.dtype = n->out[0]->desc.dtype;
  hone_node *f = hn_make_node(ctx, n, n->op_type, in, n->n_in, &like);
  if (!f || !hn_node_copy_attrs(f, n)) return hn_pass_memory(ctx);
  hn_value *of[2] = {f->out[0], hn_in(first, 1)};
  hone_node *v = hn_make_node(ctx, n, first->op_type, of, first->n_in, &n->out[0]->desc);
  if (!v || !hn_node_copy_attrs(v, first) || !hn_inherit(ctx, f, n) || !hn_inherit(ctx, v, first))
    return hn_pass_memory(ctx);
  hn_pass_hit(ctx, "%s moved before the %s", n->op_type, first->op_type);
  if (!hn_replace(ctx, n->out[0], v->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

HN_PASS(sink_views) = {.name = "sink_views",
                       .level = 2,
                       .about = "f(V(a), c) -> V(f(a, c)) where a product made a and V is a view",
                       .visit = visit};
