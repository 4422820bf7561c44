/* SoftmaxCrossEntropyLoss(x, labels, weights)  ->  NegativeLogLikelihoodLoss(LogSoftmax(x, axis=1), labels,
 * weights)
 *
 * LogSoftmax has kernels, and of its results the loss reads one for each label. */
#include "optimize/passes/common/pass.h"

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !hn_is_op(n, "SoftmaxCrossEntropyLoss") || n->n_in < 2 || !n->in[0] ||
      !n->in[1] || n->in[0]->desc.dtype != HONE_DTYPE_F32 || n->in[0]->desc.rank < 2)
    return HN_PASS_NONE;
  if (n->in[0]->desc.rank > 2 && hone_node_opset(n) < 13)
    return hn_pass_miss(ctx, "LogSoftmax of this opset goes over all that follows its axis");
  hn_value *log = n->n_out > 1 ? n->out[1] : NULL, *weights = hn_in(n, 2);
  hn_value *y = hn_make_newest(ctx, n, "LogSoftmax", n->in, 1, &n->in[0]->desc), *loss = y;
  if (!y || !hn_node_set_int(y->producer, "axis", 1)) return HN_PASS_FAIL;
  if (n->out[0]) {
    loss = hn_make_newest(ctx, n, "NegativeLogLikelihoodLoss", (hn_value *const[]){y, n->in[1], weights},
                          weights ? 3 : 2, &n->out[0]->desc);
    const char *reduction = hone_node_string(n, "reduction", "mean");
    if (!loss || !hn_node_set_string(loss->producer, "reduction", reduction, strlen(reduction)) ||
        (hone_node_has(n, "ignore_index") &&
         !hn_node_set_int(loss->producer, "ignore_index", hone_node_int(n, "ignore_index", 0))))
      return HN_PASS_FAIL;
  }
  hn_pass_hit(ctx, "a logarithm of Softmax, and its loss");
  if ((log && !hn_replace(ctx, log, y)) || (n->out[0] && !hn_replace(ctx, n->out[0], loss)))
    return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(open_losses) = {.name = "open_losses",
                        .level = 2,
                        .about = "SoftmaxCrossEntropyLoss -> LogSoftmax, NegativeLogLikelihoodLoss",
                        .visit = visit,
                        .roots = HN_ROOTS("SoftmaxCrossEntropyLoss")};
