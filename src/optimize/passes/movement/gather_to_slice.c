/* Gather(x, [0, 1, ... n - 1], axis), the whole axis   ->  x, or Reshape(x)
 * Gather(x, [a, a + 1, ... b - 1], axis)               ->  Slice(x, a..b, axis)
 * Gather(x, [0, 0, ... 0], axis), the axis of size 1   ->  Expand(x)
 *
 * With a Reshape where the indices are no vector. A Slice is read in place by more readers than a Gather. One
 * index of many stays: it is a Slice and a Reshape already, to whoever asks. */
#include "optimize/passes/common/dims.h"
#include "optimize/passes/common/pass.h"

typedef struct picked {
  int64_t n, dim;         /* indices, of so many places along the axis */
  int64_t first;          /* place */
  bool range, first_only; /* the indices follow each other; all are 0 */
} picked;

/* False where an index is outside of the axis. */
static bool read_indices(const hone_tensor *index, int64_t dim, picked *p) {
  *p = (picked){.n = hn_count(index), .dim = dim, .range = true, .first_only = true};
  for (int64_t i = 0; i < p->n; i++) {
    const int64_t v = hn_get_i64(index, i), at = v < 0 ? v + dim : v;
    if (at < 0 || at >= dim) return false;
    if (i == 0) p->first = at;
    p->range &= at == p->first + i;
    p->first_only &= at == 0;
  }
  return p->n > 0;
}

/* A Reshape of x to `like` before n. NULL without ctx->status set: the shape is not known well enough. */
static hn_value *reshape(hn_pass_context *ctx, hone_node *n, hn_value *x, const hone_tensor_desc *like) {
  int64_t shape[HONE_MAX_RANK];
  if (!hn_dims_reshape(&x->desc, like, shape)) return NULL;
  hn_value *c = hn_make_ints(ctx, n->out[0]->name, shape, like->rank);
  hone_node *r = c ? hn_make_node(ctx, n, "Reshape", (hn_value *const[]){x, c}, 2, like) : NULL;
  return r && hn_inherit(ctx, r, n) ? r->out[0] : NULL;
}

static hn_value *slice(hn_pass_context *ctx, hone_node *n, int64_t axis, const picked *p) {
  const char *stem = n->out[0]->name;
  hone_tensor_desc like = n->in[0]->desc;
  like.dim[axis] = p->n;
  hn_value *start = hn_make_ints(ctx, stem, &p->first, 1),
           *end = start ? hn_make_ints(ctx, stem, &(int64_t){p->first + p->n}, 1) : NULL,
           *axes = end ? hn_make_ints(ctx, stem, &axis, 1) : NULL;
  hone_node *s =
      axes ? hn_make_node(ctx, n, "Slice", (hn_value *const[]){n->in[0], start, end, axes}, 4, &like) : NULL;
  return s && hn_inherit(ctx, s, n) ? s->out[0] : NULL;
}

/* x with ones for the indices' dimensions, repeated along them. */
static hn_value *expand(hn_pass_context *ctx, hone_node *n, int64_t axis, const hone_tensor_desc *index) {
  hn_value *x = n->in[0], *y = n->out[0];
  hone_tensor_desc one = y->desc;
  int64_t shape[HONE_MAX_RANK];
  for (int32_t d = 0; d < y->desc.rank; d++) shape[d] = 1;
  for (int32_t d = 0; d < index->rank; d++) one.dim[axis + d] = 1, shape[axis + d] = index->dim[d];
  if (index->rank != 1 && !(x = reshape(ctx, n, x, &one))) return NULL;
  hn_value *c = hn_make_ints(ctx, y->name, shape, y->desc.rank);
  hone_node *e = c ? hn_make_node(ctx, n, "Expand", (hn_value *const[]){x, c}, 2, &y->desc) : NULL;
  return e && hn_inherit(ctx, e, n) ? e->out[0] : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor *index = hn_is_op(n, "Gather") ? hn_known(hn_in(n, 1)) : NULL;
  if (!index || !n->in[0] || n->in[0]->constant || n->in[0]->graph != n->graph) return HN_PASS_NONE;
  hn_value *x = n->in[0], *y = n->out[0];
  int64_t axis = hone_node_int(n, "axis", 0), shape[HONE_MAX_RANK];
  axis = axis < 0 ? axis + x->desc.rank : axis;
  picked p;
  if (axis < 0 || axis >= x->desc.rank || y->desc.rank != x->desc.rank - 1 + index->desc.rank ||
      x->desc.dim[axis] < 1 || !read_indices(index, x->desc.dim[axis], &p))
    return HN_PASS_NONE;
  const bool whole = p.range && p.n == p.dim, spread = p.first_only && p.dim == 1 && p.n > 1;
  if (!whole && !spread && !(p.range && p.n > 1)) return HN_PASS_NONE;
  const bool vector = index->desc.rank == 1;
  if (whole && vector && !hn_can_replace(y, x))
    return hn_pass_miss(ctx, "Gather connects two ends of the graph");
  if (!vector && !hn_dims_reshape(&x->desc, &y->desc, shape))
    return hn_pass_miss(ctx, "the resulting shape is not known up to one dimension");
  if (n->opset < (whole ? 5 : spread ? 8 : 10)) return hn_pass_miss(ctx, "opset %d", (int)n->opset);
  hn_value *r = whole ? x : spread ? expand(ctx, n, axis, &index->desc) : slice(ctx, n, axis, &p);
  if (r && !spread && !vector) r = reshape(ctx, n, r, &y->desc);
  if (!r) return HN_PASS_FAIL;
  if (whole)
    hn_pass_hit(ctx, "takes all %lld in order", (long long)p.n);
  else if (spread)
    hn_pass_hit(ctx, "takes the only one %lld times", (long long)p.n);
  else
    hn_pass_hit(ctx, "takes %lld that follow each other", (long long)p.n);
  if (!hn_replace(ctx, y, r)) return HN_PASS_FAIL;
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

HN_PASS(gather_to_slice) = {.name = "gather_to_slice",
                            .level = 2,
                            .about = "Gather(x, [a, a + 1, ...]) -> Slice(x, a..b), Reshape or Expand",
                            .visit = visit,
                            .roots = HN_ROOTS("Gather")};
