/* SkipLayerNormalization(x, skip, gamma, beta, bias)  ->  LayerNormalization(x + skip + bias, gamma, beta)
 * SkipSimplifiedLayerNormalization likewise           ->  RMSNormalization
 * SimplifiedLayerNormalization(x, gamma)              ->  RMSNormalization(x, gamma) */
#include "optimize/passes/common/pass.h"

static bool wanted(const hone_node *n, uint32_t i) {
  return i < n->n_out && n->out[i] && hn_value_needed(n->out[i]);
}

static hn_value *normalised(hn_pass_context *ctx, hone_node *n, hn_value *x, hn_value *gamma, hn_value *beta,
                            bool rms, int64_t axis, float epsilon) {
  const char *op = rms ? "RMSNormalization" : "LayerNormalization";
  hn_value *y = hn_make_newest(ctx, n, op, (hn_value *const[]){x, gamma, beta}, beta ? 3 : 2, &x->desc);
  if (y &&
      (!hn_node_set_float(y->producer, "epsilon", epsilon) || !hn_node_set_int(y->producer, "axis", axis)))
    return hn_pass_memory(ctx), NULL;
  return y;
}

static hn_pass_result finish(hn_pass_context *ctx, hone_node *n, hn_value *y, hn_value *sum) {
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "a sum, and its normalisation");
  if (wanted(n, 3) && !hn_replace(ctx, n->out[3], sum)) return HN_PASS_FAIL;
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || !n->n_in || !n->in[0] || !n->out[0]) return HN_PASS_NONE;
  const bool plain = hn_is_op(n, "SimplifiedLayerNormalization"),
             ours = strcmp(n->domain, "com.microsoft") == 0,
             rms = ours && strcmp(n->op_type, "SkipSimplifiedLayerNormalization") == 0;
  if (!plain && !rms && !(ours && strcmp(n->op_type, "SkipLayerNormalization") == 0)) return HN_PASS_NONE;
  if (n->in[0]->desc.dtype != HONE_DTYPE_F32) return HN_PASS_NONE;
  if (wanted(n, 1) || wanted(n, 2)) return hn_pass_miss(ctx, "the mean or the deviation is read, too");
  if (plain)
    return finish(ctx, n,
                  normalised(ctx, n, n->in[0], n->in[1], NULL, true, hone_node_int(n, "axis", -1),
                             hone_node_float(n, "epsilon", 1e-5f)),
                  NULL);
  hn_value *beta = rms ? NULL : hn_in(n, 3), *bias = hn_in(n, rms ? 3 : 4);
  hn_value *sum = hn_make_newest(ctx, n, "Add", n->in, 2, &n->out[0]->desc);
  if (sum && bias) sum = hn_make_newest(ctx, n, "Add", (hn_value *const[]){sum, bias}, 2, &n->out[0]->desc);
  if (!sum) return HN_PASS_FAIL;
  return finish(ctx, n,
                normalised(ctx, n, sum, n->in[2], beta, rms, -1, hone_node_float(n, "epsilon", 1e-12f)), sum);
}

HN_PASS(open_skip_norms) = {
    .name = "open_skip_norms",
    .level = 1,
    .about =
        "SkipLayerNormalization, SimplifiedLayerNormalization... of ONNX Runtime -> Add, the normalisation",
    .visit = visit,
    .roots = HN_ROOTS("SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization",
                      "SkipLayerNormalization"),
};
