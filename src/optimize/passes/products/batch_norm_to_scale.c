/* BN(x)  ->  x * k + d          k = scale / sqrt(variance + eps), d = bias - mean k, shaped [C, 1, 1...]
 *
 * For what fold_batch_norm and its counterpart left over. Mul and Add are elementwise: they fuse with their
 * neighbours. */
#include "optimize/passes/common/affine.h"

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!hn_is_op(n, "BatchNormalization") || !hn_in(n, 0)) return HN_PASS_NONE;
  hn_value *x = n->in[0], *y = n->out[0];
  double *k, *d;
  int64_t channels = hn_affine_of_batch_norm(ctx, n, &k, &d);
  if (ctx->status != HONE_OK) return HN_PASS_FAIL;
  if (channels < 0) return HN_PASS_MISS;
  if (n->opset < 7)
    return hn_pass_miss(ctx, "Mul and Add of opset %d do not broadcast by themselves", (int)n->opset);
  if (x->desc.rank < 2 || !hn_foldable_float(x->desc.dtype))
    return hn_pass_miss(ctx, "the rank of '%.80s' is not known", x->name);
  if (x->desc.dtype != n->in[1]->desc.dtype)
    return hn_pass_miss(ctx, "the parameters have another type than the data");
  int64_t dim[HONE_MAX_RANK] = {channels};
  for (int32_t i = 1; i + 1 < x->desc.rank; i++) dim[i] = 1;
  hone_tensor_desc desc = hone_desc(x->desc.dtype, x->desc.rank - 1, dim);
  hn_value *kv = hn_make_floats(ctx, n->in[1]->name, &desc, k),
           *dv = kv ? hn_make_floats(ctx, n->in[2]->name, &desc, d) : NULL;
  if (!dv) return HN_PASS_FAIL;
  hone_node *mul = hn_make_node(ctx, n, "Mul", (hn_value *const[]){x, kv}, 2, &y->desc);
  hone_node *add =
      mul ? hn_make_node(ctx, n, "Add", (hn_value *const[]){mul->out[0], dv}, 2, &y->desc) : NULL;
  if (!add || !hn_inherit(ctx, mul, n) || !hn_inherit(ctx, add, n) || !hn_replace(ctx, y, add->out[0]))
    return HN_PASS_FAIL;
  hn_node_remove(n);
  return hn_pass_hit(ctx, "normalisation without a convolution beside it");
}

HN_PASS(batch_norm_to_scale) = {.name = "batch_norm_to_scale",
                                .level = 1,
                                .about = "BN(x) -> x k + d",
                                .visit = visit,
                                .roots = HN_ROOTS("BatchNormalization")};
