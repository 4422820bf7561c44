/* Reshape(Gemm(Reshape(x), W, b))  ->  MatMul(x, W) + b         W and b constant
 *
 * A layer over the last of several dimensions, as GPT-2 writes it: rows are put one below the other for Gemm
 * and apart again behind it. MatMul takes them as they are, and what reads the result can become its
 * epilogue: the views stood between. Where x has another shape than the result's rows, one Reshape stays in
 * front, of x as it lies. For accelerators: a processor gains nothing (GPT-2 of 4 layers: the same time). */
#include "optimize/passes/common/dims.h"
#include "optimize/passes/common/pass.h"

static void turned(int32_t rank, int64_t *perm) {
  for (int32_t i = 0; i < rank; i++) perm[i] = rank - 1 - i;
}

/* One value a column, or one for all? */
static bool is_row(const hn_value *b, int64_t columns) {
  const hone_tensor_desc *d = &b->desc;
  for (int32_t i = 0; i + 1 < d->rank; i++)
    if (d->dim[i] != 1) return false;
  return d->rank == 0 || d->dim[d->rank - 1] == columns || d->dim[d->rank - 1] == 1;
}

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  if (!ctx->options->lowered || ctx->options->processor) return HN_PASS_NONE;
  hone_node *gemm = m->node[0], *after = m->node[1],
            *before = gemm->in[0]->producer; /* which others may read */
  if (!before || !hn_is_op(before, "Reshape")) return HN_PASS_NONE;
  hn_value *x = before->in[0], *w = hn_match_get(m, "w"), *b = hn_in(gemm, 2), *y = after->out[0];
  int64_t shape[HONE_MAX_RANK];
  if (y->desc.rank < 3 || x->desc.rank < 1 || w->desc.rank != 2 || gemm->opset < 7) return HN_PASS_NONE;
  if (!hn_foldable_float(x->desc.dtype) || w->desc.dtype != x->desc.dtype) return HN_PASS_NONE;
  if (hone_node_int(gemm, "transA", 0) || hone_node_float(gemm, "alpha", 1) != 1 ||
      (b && hone_node_float(gemm, "beta", 1) != 1))
    return HN_PASS_NONE;
  const bool across = hone_node_int(gemm, "transB", 0) != 0;
  const int64_t rows = w->desc.dim[across], columns = w->desc.dim[!across];
  if (gemm->in[0]->desc.rank != 2 || rows < 1 || columns < 1) return HN_PASS_NONE;
  if (y->desc.dim[y->desc.rank - 1] != columns)
    return hn_pass_miss(ctx, "'%.80s' does not end with the columns of '%.80s'", y->name, w->name);
  if (b && (!hn_known_desc(b) || b->desc.dtype != x->desc.dtype || !is_row(b, columns)))
    return hn_pass_miss(ctx, "'%.80s' is not one constant value a column", b->name);
  hone_tensor_desc laid = y->desc;
  laid.dim[laid.rank - 1] = rows;
  hone_desc_set_layout(&laid, HONE_LAYOUT_ROW_MAJOR, 0);
  const bool as_it_is = hn_same_shape(&x->desc, &laid);
  if (!as_it_is && (after->opset < 5 || !hn_dims_reshape(&x->desc, &laid, shape)))
    return hn_pass_miss(ctx, "the shape of '%.80s' is not known up to one dimension", y->name);
  hn_value *in[2] = {x, w};
  if (!as_it_is) {
    hn_value *c = hn_make_ints(ctx, x->name, shape, laid.rank);
    hone_node *r = c ? hn_make_node(ctx, gemm, "Reshape", (hn_value *const[]){x, c}, 2, &laid) : NULL;
    if (!r || !hn_inherit(ctx, r, before)) return HN_PASS_FAIL;
    in[0] = r->out[0];
  }
  if (across && !(in[1] = hn_make_turned(ctx, gemm, w, turned))) return HN_PASS_FAIL;
  hone_node *product = hn_make_node(ctx, gemm, "MatMul", in, 2, &y->desc);
  if (!product || !hn_inherit(ctx, product, gemm)) return HN_PASS_FAIL;
  hn_value *made = product->out[0];
  if (b) {
    hone_node *add = hn_make_node(ctx, after, "Add", (hn_value *const[]){made, b}, 2, &y->desc);
    if (!add || !hn_inherit(ctx, add, gemm)) return HN_PASS_FAIL;
    made = add->out[0];
  }
  if (!hn_inherit(ctx, made->producer, after) || !hn_replace(ctx, y, made)) return HN_PASS_FAIL;
  hn_remove_unread(after, 2);
  return hn_pass_hit(ctx, "Gemm of rows became MatMul");
}

HN_PASS(gemm_of_rows) = {
    .name = "gemm_of_rows",
    .level = 2,
    .about = "Reshape(Gemm(Reshape(x), W, b)) -> MatMul(x, W) + b (on accelerators)",
    .patterns = HN_PATTERNS("%g = Gemm(%r, !%w, ?%b)\n%y = Reshape(%g, ?%t)"),
    .match = match,
};
