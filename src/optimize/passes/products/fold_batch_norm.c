/* BN(W x + b)  ->  (k W) x + (k b + d)       k = scale / sqrt(variance + eps), d = bias - mean k, per channel
 *
 * For Conv, ConvTranspose and Gemm with constant weights. Computed in double, rounded once. */
#include "optimize/passes/common/affine.h"

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *conv = m->node[0], *norm = m->node[1];
  double *k, *d;
  int64_t channels = hn_affine_of_batch_norm(ctx, norm, &k, &d);
  int64_t made = channels < 0 ? -1 : hn_affine_channels(ctx, conv);
  if (ctx->status != HONE_OK) return HN_PASS_FAIL;
  if (made < 0) return HN_PASS_MISS;
  if (made != channels)
    return hn_pass_miss(ctx, "%lld channels are made, %lld normalised", (long long)made, (long long)channels);
  hn_pass_result r = hn_affine_apply(ctx, conv, k, d, channels);
  if (r != HN_PASS_HIT) return r;
  if (!hn_inherit(ctx, conv, norm) || !hn_replace(ctx, norm->out[0], conv->out[0])) return HN_PASS_FAIL;
  hn_node_remove(norm);
  return hn_pass_hit(ctx, "folded into %s '%.80s'", conv->op_type, conv->name);
}

HN_PASS(fold_batch_norm) = {
    .name = "fold_batch_norm",
    .level = 1,
    .about = "BN(Wx + b) -> (kW)x + (kb + d), k = scale / sqrt(var + eps), d = bias - mean k",
    .patterns = HN_PATTERNS("%c = Conv|ConvTranspose|Gemm(%x, %w, ?%b)\n"
                            "%y = BatchNormalization(%c, %scale, %bias, %mean, %var)"),
    .match = match,
};
