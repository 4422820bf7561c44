/* TreeEnsembleClassifier, LinearClassifier, SVMClassifier whose classes are texts
 *   ->  the same whose classes are 0, 1, 2...; Gather(texts, classes)
 *
 * Where numbers come out they have fast ways, and a text is looked up for each row. */
#include "model/ops/classical/features.h"
#include "optimize/passes/common/pass.h"

/* Numbers of classes have another name where there are trees. */
static const char *numbers_of(const hone_node *n) {
  return strcmp(n->op_type, "TreeEnsembleClassifier") == 0 ? "classlabels_int64s" : "classlabels_ints";
}

static hn_value *texts_of(hn_pass_context *ctx, hone_node *n, const hn_labels *labels) {
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_STRING, 1, &labels->n);
  return hn_make_constant(ctx, n->name, &d, labels->text);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "ai.onnx.ml") || !n->n_out || n->n_out > 2 ||
      !n->out[0] || n->out[0]->desc.dtype != HONE_DTYPE_STRING || n->out[0]->desc.rank != 1)
    return HN_PASS_NONE;
  const hn_labels labels = hn_labels_of(n, numbers_of(n));
  if (!labels.text) return HN_PASS_NONE;
  int64_t *place = HN_NEW_ARRAY(ctx->scratch, int64_t, labels.n);
  hn_value *text = texts_of(ctx, n, &labels), *out[2] = {0};
  if (!place) return hn_pass_memory(ctx);
  for (int64_t i = 0; i < labels.n; i++) place[i] = i;
  for (uint32_t i = 0; i < n->n_out; i++) {
    if (!n->out[i]) continue;
    if (!(out[i] = hn_value_create(ctx->graph, NULL))) return hn_pass_memory(ctx);
    out[i]->desc = n->out[i]->desc;
  }
  out[0]->desc.dtype = HONE_DTYPE_I64;
  hone_node *c = hn_node_create(ctx->graph, n, n->op_type, n->domain, NULL, n->in, n->n_in, out, n->n_out);
  if (!text || !c) return hn_pass_memory(ctx);
  c->op = n->op, c->opset = n->opset;
  if (!hn_inherit(ctx, c, n) || !hn_node_copy_attrs(c, n)) return hn_pass_memory(ctx);
  hn_node_drop_attr(c, "classlabels_strings");
  if (!hn_node_set_ints(c, numbers_of(n), place, (size_t)labels.n)) return hn_pass_memory(ctx);
  hn_value *y = hn_make_newest(ctx, n, "Gather", (hn_value *const[]){text, out[0]}, 2, &n->out[0]->desc);
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "classes are numbers, whose texts are looked up");
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  if (n->n_out > 1 && n->out[1] && !hn_replace(ctx, n->out[1], out[1])) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(open_text_labels) = {
    .name = "open_text_labels",
    .level = 2,
    .about = "classifiers of ai.onnx.ml with texts as classes -> with numbers, Gather of texts",
    .visit = visit,
    .roots = HN_ROOTS("LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier")};
