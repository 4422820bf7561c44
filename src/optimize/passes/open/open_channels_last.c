/* NhwcMaxPool(x)                    ->  Transpose(MaxPool(Transpose(x)))
 * QLinearConv(x) with channels_last ->  the same with QLinearConv of ONNX, QLinearAveragePool likewise
 * NhwcConv(x, w), NhwcFusedConv(x)  ->  the same with Conv and FusedConv
 *
 * ONNX Runtime writes files so whose channels are the last dimension; the Transposes of neighbours cancel. */
#include "model/ops/microsoft/common/inner.h"
#include "optimize/passes/common/pass.h"

/* A node of com.microsoft with the same attributes. */
static hn_value *ours(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *const *in, uint32_t n_in,
                      const hone_tensor_desc *like) {
  hn_value *out = hn_value_create(ctx->graph, NULL);
  hone_node *f = out ? hn_node_create(ctx->graph, n, op, n->domain, NULL, in, n_in, &out, 1) : NULL;
  if (!f) return hn_pass_memory(ctx), NULL;
  out->desc = *like;
  f->op = hn_op_find(ctx->model->operators, n->domain, op, n->opset, NULL);
  return hn_inherit(ctx, f, n) ? out : NULL;
}

/* Which inputs have their channels last beside the first; the operator that has them first. */
static const struct {
  const char *op, *first;
  uint32_t last; /* bit i: input i */
  bool ours, codes;
} known[] = {{"NhwcMaxPool", "MaxPool", 1, false, true},
             {"QLinearConv", "QLinearConv", 1, false, true},
             {"NhwcConv", "Conv", 3, false, false},
             {"NhwcFusedConv", "FusedConv", 1 | 8, true, false},
             {"QLinearAveragePool", "QLinearAveragePool", 1, true, false},
             {"QLinearGlobalAveragePool", "QLinearGlobalAveragePool", 1, true, false}};

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || !hn_same_name(n->domain, "com.microsoft")) return HN_PASS_NONE;
  size_t k = 0;
  while (k < sizeof known / sizeof *known && strcmp(n->op_type, known[k].op) != 0) k++;
  if (k == sizeof known / sizeof *known) return HN_PASS_NONE;
  const bool asks = strncmp(n->op_type, "QLinear", 7) == 0,
             last = !asks || hone_node_int(n, "channels_last", 0) != 0;
  if (!last && known[k].ours) return HN_PASS_NONE;
  const char *op = known[k].first;
  if (known[k].codes && (!hn_has_op(ctx, op) || hn_model_opset(ctx->model, "") < 12))
    return hn_pass_miss(ctx, "the opset has no %s of codes", op);
  hn_value **in = HN_NEW_ARRAY(ctx->scratch, hn_value *, n->n_in);
  if (!in) return hn_pass_memory(ctx);
  memcpy(in, n->in, n->n_in * sizeof *in);
  for (uint32_t i = 0; i < n->n_in; i++)
    if ((known[k].last >> i & 1) && in[i] && in[i]->desc.rank < 3)
      return hn_pass_miss(ctx, "the rank is not known");
  for (uint32_t i = 0; i < n->n_in && last; i++)
    if ((known[k].last >> i & 1) && in[i] && !(in[i] = hn_make_turned(ctx, n, in[i], hn_channels_first_perm)))
      return HN_PASS_FAIL;
  const hone_tensor_desc like = last ? hn_channels_first(&n->out[0]->desc) : n->out[0]->desc;
  hn_value *y =
      known[k].ours ? ours(ctx, n, op, in, n->n_in, &like) : hn_make_newest(ctx, n, op, in, n->n_in, &like);
  if (!y) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(y->producer, n)) return hn_pass_memory(ctx);
  hn_node_drop_attr(y->producer, "channels_last");
  if (last && !(y = hn_make_turned(ctx, n, y, hn_channels_last_perm))) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "%s with the channels first", op);
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(open_channels_last) = {
    .name = "open_channels_last",
    .level = 1,
    .about = "NhwcMaxPool, NhwcConv, QLinearConv with channels_last -> between Transposes",
    .visit = visit,
};
