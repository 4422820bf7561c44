/* x W + b  ->  Gemm(x, W, b)         x and W of rank 2, b one value a column
 *
 * Gemm carries its bias, so that other engines and the passes that fold into it see one node. Only for
 * constant W and b. */
#include "optimize/passes/common/pass.h"

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *mul = m->node[0], *add = m->node[1];
  hn_value *x = hn_match_get(m, "x"), *w = hn_match_get(m, "w"), *b = hn_match_get(m, "b"), *y = add->out[0];
  if (x->desc.rank != 2) return hn_pass_miss(ctx, "'%.80s' has rank %d, Gemm takes 2", x->name, x->desc.rank);
  if (w->desc.rank != 2 || add->opset < 7) return HN_PASS_NONE;
  if (!hn_foldable_float(x->desc.dtype) || b->desc.dtype != x->desc.dtype) return HN_PASS_NONE;
  int64_t columns = w->desc.dim[1];
  bool row = (b->desc.rank == 1 || (b->desc.rank == 2 && b->desc.dim[0] == 1)) &&
             b->desc.dim[b->desc.rank - 1] == columns;
  if (!row) return hn_pass_miss(ctx, "'%.80s' is not one value a column", b->name);
  hone_node *g = hn_make_node(ctx, add, "Gemm", (hn_value *const[]){x, w, b}, 3, &y->desc);
  if (!g || !hn_inherit(ctx, g, mul) || !hn_inherit(ctx, g, add) || !hn_replace(ctx, y, g->out[0]))
    return HN_PASS_FAIL;
  hn_remove_unread(add, 1);
  return hn_pass_hit(ctx, "MatMul and Add became Gemm");
}

HN_PASS(matmul_add_to_gemm) = {
    .name = "matmul_add_to_gemm",
    .level = 2,
    .about = "xW + b -> Gemm(x, W, b) for rank 2",
    .patterns = HN_PATTERNS("%t = MatMul(%x, !%w)\n%y = Add(%t, !%b)"),
    .match = match,
};
