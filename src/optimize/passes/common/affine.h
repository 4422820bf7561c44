/* Folding y' = k[c] y + d[c] into the constants of the node that makes y: Conv, ConvTranspose or Gemm. */
#ifndef HN_OPTIMIZE_PASSES_AFFINE_H
#define HN_OPTIMIZE_PASSES_AFFINE_H

#include "optimize/passes/common/pass.h"

/* Number of output channels of a Conv, ConvTranspose or Gemm with constant weights; -1 with a reason in
 * ctx->why when the constants cannot be folded into. */
int64_t hn_affine_channels(hn_pass_context *ctx, const hone_node *node);

/* Makes the node compute k[c] y + d[c] instead of y (k NULL: ones; d NULL: zeros). HN_PASS_MISS with a reason
 * when a constant would overflow; nothing is changed then. Computes in double, rounds once. */
hn_pass_result hn_affine_apply(hn_pass_context *ctx, hone_node *node, const double *k, const double *d,
                               int64_t channels);

/* BatchNormalization at inference as k[c] x + d[c] in doubles (arrays of hn_pass scratch memory); the number
 * of channels, or -1 with a reason in ctx->why. */
int64_t hn_affine_of_batch_norm(hn_pass_context *ctx, const hone_node *node, double **k, double **d);

#endif
