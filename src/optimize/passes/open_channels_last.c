/* NhwcMaxPool(x)                    ->  Transpose(MaxPool(Transpose(x)))
 * QLinearConv(x) with channels_last ->  the same with QLinearConv of ONNX
 *
 * ONNX Runtime writes files so whose channels are the last dimension; the Transposes of neighbours cancel. */
#include "model/ops/microsoft/inner.h"
#include "optimize/passes/common/pass.h"

static hn_value *turned(hn_pass_context *ctx, hone_node *n, hn_value *v, void (*order)(int32_t, int64_t *)) {
  int64_t perm[HONE_MAX_RANK], dim[HONE_MAX_RANK];
  order(v->desc.rank, perm);
  for (int32_t i = 0; i < v->desc.rank; i++) dim[i] = v->desc.dim[perm[i]];
  const hone_tensor_desc like = hone_desc(v->desc.dtype, v->desc.rank, dim);
  hn_value *t = hn_make_newest(ctx, n, "Transpose", &v, 1, &like);
  if (t && !hn_node_set_ints(t->producer, "perm", perm, (size_t)v->desc.rank))
    return hn_pass_memory(ctx), NULL;
  return t;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "com.microsoft") != 0) return HN_PASS_NONE;
  const bool pool = strcmp(n->op_type, "NhwcMaxPool") == 0, conv = strcmp(n->op_type, "QLinearConv") == 0;
  if (!pool && !conv) return HN_PASS_NONE;
  const bool last = pool || hone_node_int(n, "channels_last", 0) != 0;
  const char *op = pool ? "MaxPool" : "QLinearConv";
  if (n->in[0]->desc.rank < 3) return hn_pass_miss(ctx, "the rank is not known");
  if (!hn_has_op(ctx, op) || hn_model_opset(ctx->model, "") < 12)
    return hn_pass_miss(ctx, "the opset has no %s of codes", op);
  hn_value **in = HN_NEW_ARRAY(ctx->scratch, hn_value *, n->n_in);
  if (!in) return hn_pass_memory(ctx);
  memcpy(in, n->in, n->n_in * sizeof *in);
  if (last && !(in[0] = turned(ctx, n, in[0], hn_channels_first_perm))) return HN_PASS_FAIL;
  const hone_tensor_desc like = last ? hn_channels_first(&n->out[0]->desc) : n->out[0]->desc;
  hn_value *y = hn_make_newest(ctx, n, op, in, n->n_in, &like);
  if (!y) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(y->producer, n)) return hn_pass_memory(ctx);
  hn_node_drop_attr(y->producer, "channels_last");
  if (last && !(y = turned(ctx, n, y, hn_channels_last_perm))) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "%s with the channels first", op);
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(open_channels_last) = {
    .name = "open_channels_last",
    .level = 1,
    .about = "NhwcMaxPool, QLinearConv with channels_last -> between Transposes",
    .visit = visit,
};
