/* W BN(x) + b  ->  (W k) x + (b + W d)       k, d of the normalisation, per input channel
 *
 * For Conv and Gemm. A Conv that pads is refused unless d is zero: it pads the normalised tensor with 0,
 * which is d before the normalisation. */
#include "base/dims.h"
#include "optimize/passes/common/affine.h"

static bool pads(const hone_node *n) {
  size_t count;
  const int64_t *p = hone_node_ints(n, "pads", &count);
  for (size_t i = 0; i < count; i++)
    if (p[i] != 0) return true;
  return strncmp(hone_node_string(n, "auto_pad", "NOTSET"), "SAME", 4) == 0;
}

static hn_pass_result match(hn_pass_context *ctx, const hone_match *m) {
  hone_node *norm = m->node[0], *n = m->node[1];
  double *k, *d;
  int64_t channels = hn_affine_of_batch_norm(ctx, norm, &k, &d);
  int64_t out = channels < 0 ? -1 : hn_affine_channels(ctx, n);
  if (ctx->status != HONE_OK) return HN_PASS_FAIL;
  if (out < 0) return HN_PASS_MISS;
  bool gemm = hn_is_op(n, "Gemm"), shifts = false;
  for (int64_t c = 0; c < channels; c++) shifts |= d[c] != 0;
  if (!gemm && pads(n) && shifts)
    return hn_pass_miss(ctx, "'%.80s' pads with zeros, which the normalisation would shift", n->name);
  if (gemm && (hone_node_int(n, "transA", 0) || n->in[0]->desc.rank != 2))
    return hn_pass_miss(ctx, "'%.80s' transposes its input", n->name);
  if (gemm && (hone_node_float(n, "alpha", 1) != 1 || hone_node_float(n, "beta", 1) != 1))
    return hn_pass_miss(ctx, "'%.80s' scales its operands", n->name);
  const hone_tensor *w = hn_known(n->in[1]);
  if (!w) return hn_pass_memory(ctx);
  bool trans = gemm && hone_node_int(n, "transB", 0);
  int64_t group = gemm ? 1 : hone_node_int(n, "group", 1), inner = hn_dims(&w->desc, 2, w->desc.rank),
          count = hn_count(w);
  int64_t per_group = gemm ? channels : w->desc.dim[1];
  if (group < 1 || per_group * group != channels || out % group)
    return hn_pass_miss(ctx, "the channels do not fit the groups");
  if (gemm && w->desc.dim[trans ? 1 : 0] != channels) return hn_pass_miss(ctx, "the columns do not fit");
  double *weights = HN_NEW_ARRAY(ctx->scratch, double, count + 1),
         *shift = HN_NEW_ARRAY(ctx->scratch, double, out);
  if (!weights || !shift) return hn_pass_memory(ctx);
  for (int64_t i = 0; i < count; i++) {
    int64_t column = i / inner % w->desc.dim[1], row = i / inner / w->desc.dim[1];
    int64_t o = gemm && !trans ? column : row;
    int64_t c = gemm ? (trans ? column : row) : row / (out / group) * per_group + column;
    double v = hn_get_f64(w, i);
    weights[i] = v * k[c];
    shift[o] += v * d[c];
    if (!isfinite(v) || !(fabs(weights[i]) <= 3.4028234e38))
      return hn_pass_miss(ctx, "the folded weights would overflow");
  }
  hn_value *new_w = hn_make_floats(ctx, n->in[1]->name, &w->desc, weights);
  if (!new_w) return HN_PASS_FAIL;
  if (shifts) { /* the bias first: with k = 1 it reads the old weights' shape alone */
    hn_pass_result r = hn_affine_apply(ctx, n, NULL, shift, out);
    if (r != HN_PASS_HIT) return r;
  }
  if (!hn_set_input(ctx, n, 1, new_w) || !hn_set_input(ctx, n, 0, norm->in[0]) || !hn_inherit(ctx, n, norm))
    return HN_PASS_FAIL;
  hn_remove_unread(norm, 0);
  return hn_pass_hit(ctx, "folded into the %s '%.80s' that follows", n->op_type, n->name);
}

HN_PASS(fold_batch_norm_before) = {
    .name = "fold_batch_norm_before",
    .level = 1,
    .about = "W BN(x) + b -> (Wk)x + (b + Wd)",
    .patterns =
        HN_PATTERNS("%t = BatchNormalization(%x, %scale, %bias, %mean, %var)\n%y = Conv|Gemm(%t, %w, ?%b)"),
    .match = match,
};
