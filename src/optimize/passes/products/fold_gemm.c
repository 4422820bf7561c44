/* alpha A B + beta C  ->  A (alpha B) + (beta C)         B and C constant */
#include "optimize/passes/common/affine.h"

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!hn_is_op(n, "Gemm")) return HN_PASS_NONE;
  double alpha = hone_node_float(n, "alpha", 1), beta = hone_node_float(n, "beta", 1);
  if (alpha == 1 && (beta == 1 || !hn_in(n, 2))) return HN_PASS_NONE;
  int64_t channels = hn_affine_channels(ctx, n);
  if (channels < 0) return HN_PASS_MISS;
  /* hn_affine_apply multiplies the weights by alpha and the bias by beta before anything else. */
  double *k = HN_NEW_ARRAY(ctx->scratch, double, channels);
  if (!k) return hn_pass_memory(ctx);
  for (int64_t i = 0; i < channels; i++) k[i] = 1;
  hn_pass_result r = hn_affine_apply(ctx, n, k, NULL, channels);
  return r == HN_PASS_HIT
             ? hn_pass_hit(ctx, "alpha %g and beta %g multiplied into the constants", alpha, beta)
             : r;
}

HN_PASS(fold_gemm) = {.name = "fold_gemm",
                      .level = 2,
                      .about = "alpha A B + beta C -> A (alpha B) + (beta C)",
                      .visit = visit,
                      .roots = HN_ROOTS("Gemm")};
