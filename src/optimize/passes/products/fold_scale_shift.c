/* (W x + b) * k      ->  (k W) x + k b
 * (W x + b) + d      ->  W x + (b + d)
 * (W x + b) / k, - d ->  likewise
 *
 * For Conv, ConvTranspose and Gemm with constant weights, and constants of one value or one a channel. */
#include "optimize/passes/common/affine.h"

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *conv = m->node[0], *op = m->node[1];
  hn_value *c = hn_match_get(m, "c"), *y = conv->out[0];
  int64_t n = hn_affine_channels(ctx, conv);
  if (n < 0) return HN_PASS_MISS;
  int32_t rank = conv->in[1]->constant->desc.rank;
  double *v = HN_NEW_ARRAY(ctx->scratch, double, n);
  if (!v) return hn_pass_memory(ctx);
  if (c->desc.dtype != y->desc.dtype || !hn_channel_values(c, rank, 1, n, v))
    return hn_pass_miss(ctx, "'%.80s' has other values than one a channel", c->name);
  bool add = hn_is_op(op, "Add"), sub = hn_is_op(op, "Sub"), div = hn_is_op(op, "Div");
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(v[i]) || (div && v[i] == 0)) return hn_pass_miss(ctx, "'%.80s' holds %g", c->name, v[i]);
    v[i] = sub ? -v[i] : div ? 1 / v[i] : v[i];
  }
  hn_pass_result r = hn_affine_apply(ctx, conv, add || sub ? NULL : v, add || sub ? v : NULL, n);
  if (r != HN_PASS_HIT) return r;
  if (!hn_inherit(ctx, conv, op) || !hn_replace(ctx, op->out[0], y)) return HN_PASS_FAIL;
  hn_node_remove(op);
  return hn_pass_hit(ctx, "%s folded into %s '%.80s'", op->op_type, conv->op_type, conv->name);
}

HN_PASS(fold_scale_shift) = {
    .name = "fold_scale_shift",
    .level = 1,
    .about = "(Wx + b) * k + d -> (kW)x + (kb + d)",
    .patterns = HN_PATTERNS("%t = Conv|ConvTranspose|Gemm(%x, %w, ?%b)\n%y = Add|Mul|Sub|Div(%t, !%c)"),
    .match = match,
};
