/* spelled-out GELU, HardSwish, HardSigmoid, LayerNormalization, Mish...  ->  the operator
 *
 * Where the model's own opset has it, so that other engines recognise it too. The spellings are those of
 * optimize/match/patterns; at older opsets lowering fuses them without touching the graph. */
#include "optimize/match/attention.h"
#include "optimize/match/patterns.h"
#include "optimize/passes/common/pass.h"

static hone_node *linked_copy(hn_pass_context *ctx, const hn_pattern_hit *h) {
  const hone_node *op = h->node;
  hone_node *n = hn_make_node(ctx, h->root, op->op_type, op->in, op->n_in, &h->root->out[0]->desc);
  if (!n || !hn_node_copy_attrs(n, op)) return hn_pass_memory(ctx), NULL;
  return hn_inherit(ctx, n, op) ? n : NULL;
}

/* Attention has no operator before opset 23, and views around it that no operator expresses. */
static void report_attention(hn_pass_context *ctx) {
  for (hone_node *n = ctx->graph->first; n; n = n->next) {
    hn_attention_hit hit;
    hone_reason why;
    if (!hn_is_op(n, "Softmax")) continue;
    if (hn_attention_match(n, &hit, &why) != HN_MATCH_YES) continue;
    if (ctx->options->processor || !(hit.before.heads || hit.behind.heads))
      hn_pass_record_add(ctx, false, hit.nodes.at, hit.nodes.n, "this is attention; lowering fuses it");
  }
}

/* LayerNormalization is ONNX Runtime's own below opset 17: read there, but not written. */
static bool has_op(const hn_pass_context *ctx, const char *op, int64_t opset) {
  return hn_has_op(ctx, op) && (opset >= 17 || strcmp(op, "LayerNormalization") != 0);
}

static hn_pass_result run(hn_pass_context *ctx) {
  hn_pattern_hits hits;
  hn_pass_result result = HN_PASS_NONE;
  int64_t opset = hn_model_opset(ctx->model, "");
  ctx->status = hn_patterns_match(ctx->graph, &hits, NULL, ctx->error);
  if (ctx->status != HONE_OK) return HN_PASS_FAIL;
  for (size_t i = 0; i < hits.len && result != HN_PASS_FAIL; i++) {
    const hn_pattern_hit *h = &hits.ptr[i];
    const char *op = h->node->op_type;
    if (*h->node->domain) {
      hn_pass_record_add(ctx, false, h->nodes, h->n_nodes, "this is %s.%s; lowering fuses it",
                         h->node->domain, op);
      continue;
    }
    if (!has_op(ctx, op, opset)) {
      hn_pass_record_add(ctx, false, h->nodes, h->n_nodes,
                         "this is %s, which opset %lld has not; lowering fuses it", op, (long long)opset);
      continue;
    }
    hn_pass_record_add(ctx, true, h->nodes, h->n_nodes, "this is %s", op);
    hn_value *old = h->root->out[0];
    hone_node *n = linked_copy(ctx, h);
    if (!n || !hn_replace(ctx, old, n->out[0])) {
      result = HN_PASS_FAIL;
      break;
    }
    /* Matches behind this one were made when `old` still stood there. */
    for (size_t k = i + 1; k < hits.len; k++)
      for (uint32_t j = 0; j < hits.ptr[k].node->n_in; j++)
        if (hits.ptr[k].node->in[j] == old) hits.ptr[k].node->in[j] = n->out[0];
    hn_remove_unread(h->root, (int)h->n_nodes);
  }
  hn_vec_free(&hits);
  if (result != HN_PASS_FAIL) report_attention(ctx);
  return result;
}

HN_PASS(use_operators) = {
    .name = "use_operators",
    .level = 2,
    .about = "spelled-out GELU, HardSwish, LayerNormalization... -> the operator of the opset",
    .run = run};
