/* What passes edit graphs with (pass.h). */
#include "optimize/passes/common/pass.h"

hn_pass_result hn_pass_memory(hn_pass_context *ctx) {
  if (ctx->status == HONE_OK)
    ctx->status =
        hn_fail(ctx->error, HONE_ERROR_MEMORY, "cannot allocate memory for pass %s", ctx->pass->name);
  return HN_PASS_FAIL;
}

bool hn_has_op(const hn_pass_context *ctx, const char *op) {
  return hn_op_find(ctx->model->operators, "", op, hn_model_opset(ctx->model, ""), NULL) != NULL;
}

/* ------------------------------------------------------------------ building */

/* "stem_pass", with a number where that is taken: short, and stable from run to run. A stem that this pass
 * made already does not get longer. */
static hn_value *fresh_value(hn_pass_context *ctx, const char *stem) {
  char name[200], tail[64];
  snprintf(tail, sizeof tail, "_%.60s", ctx->pass->name);
  const char *again = strstr(stem, tail);
  int len = again ? (int)(again - stem) : 120;
  snprintf(name, sizeof name, "%.*s%s", len < 120 ? len : 120, stem, tail);
  for (unsigned i = 2; hn_value_find(ctx->graph, name) && i < 1000; i++)
    snprintf(name, sizeof name, "%.*s%s_%u", len < 120 ? len : 120, stem, tail, i);
  hn_value *v = hn_value_create(ctx->graph, hn_value_find(ctx->graph, name) ? NULL : name);
  if (!v) hn_pass_memory(ctx);
  return v;
}

hn_value *hn_make_room(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc, void **data) {
  int64_t bytes = hone_desc_bytes(desc);
  hone_tensor *t = bytes < 0 ? NULL : HN_NEW(&ctx->model->arena, hone_tensor);
  *data = t ? hn_arena_raw(&ctx->model->arena, (size_t)bytes, HN_MEM_ALIGN) : NULL;
  hn_value *v = *data ? fresh_value(ctx, stem) : NULL;
  if (!v) return hn_pass_memory(ctx), NULL;
  t->desc = *desc;
  hone_desc_set_layout(&t->desc, HONE_LAYOUT_ROW_MAJOR, 0);
  t->data = *data;
  hn_value_set_constant(v, t);
  return v;
}

hn_value *hn_make_deferred(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                           const hn_deferred *deferred) {
  hone_tensor *t = HN_NEW(&ctx->model->arena, hone_tensor);
  hn_value *v = t ? fresh_value(ctx, stem) : NULL;
  if (!v) return hn_pass_memory(ctx), NULL;
  t->desc = *desc;
  hone_desc_set_layout(&t->desc, HONE_LAYOUT_ROW_MAJOR, 0);
  hn_value_set_constant(v, t);
  v->deferred = deferred;
  return v;
}

hn_value *hn_make_widened(hn_pass_context *ctx, const hn_value *v) {
  hone_tensor_desc d = v->desc;
  d.dtype = HONE_DTYPE_F32;
  const int64_t count = hone_desc_count(&d);
  hn_deferred *from = HN_NEW(&ctx->model->arena, hn_deferred);
  void *data;
  if (!from) return hn_pass_memory(ctx), NULL;
  ctx->graph = v->graph;
  *from = (hn_deferred){.from = v->constant->data,
                        .type = v->desc.dtype,
                        .count = count,
                        .runs = {.length = count > 0 ? count : 1, .period = 1}};
  if (ctx->options->defer && hone_desc_bytes(&d) >= HN_BYTES_LARGE)
    return hn_make_deferred(ctx, v->name, &d, from);
  hn_value *made = hn_make_room(ctx, v->name, &d, &data);
  if (!made) return NULL;
  hn_deferred_make(from, data); /* cannot leave the range of f32 */
  made->was = v->desc.dtype;
  return made;
}

hn_value *hn_make_constant(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                           const void *data) {
  void *copy;
  hn_value *v = hn_make_room(ctx, stem, desc, &copy);
  if (v && hone_desc_bytes(desc) > 0) memcpy(copy, data, (size_t)hone_desc_bytes(desc));
  return v;
}

hn_value *hn_make_ints(hn_pass_context *ctx, const char *stem, const int64_t *v, int64_t n) {
  hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &n);
  return hn_make_constant(ctx, stem, &d, v);
}

hn_value *hn_make_floats(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                         const double *v) {
  if (desc->dtype == HONE_DTYPE_F64) return hn_make_constant(ctx, stem, desc, v);
  int64_t n = hone_desc_count(desc);
  float *data = HN_NEW_ARRAY(ctx->scratch, float, n > 0 ? n : 1);
  if (!data) return hn_pass_memory(ctx), NULL;
  for (int64_t i = 0; i < n; i++) data[i] = (float)v[i];
  return hn_make_constant(ctx, stem, desc, data);
}

hone_node *hn_make_node(hn_pass_context *ctx, hone_node *before, const char *op, hn_value *const *in,
                        uint32_t n_in, const hone_tensor_desc *like) {
  hn_value *out = fresh_value(ctx, before && before->n_out && before->out[0] ? before->out[0]->name : op);
  if (!out) return NULL;
  if (like) out->desc = *like;
  hone_node *n = hn_node_create(ctx->graph, before, op, "", NULL, in, n_in, &out, 1);
  if (!n) return hn_pass_memory(ctx), NULL;
  n->op = hn_op_find(ctx->model->operators, "", op, n->opset, NULL);
  return n;
}

hn_value *hn_make_newest(hn_pass_context *ctx, hone_node *before, const char *op, hn_value *const *in,
                         uint32_t n_in, const hone_tensor_desc *like) {
  int64_t opset;
  hone_node *n = hn_make_node(ctx, before, op, in, n_in, like);
  if (!n || !hn_inherit(ctx, n, before)) return NULL;
  if (!n->op) n->op = hn_op_newest(ctx->model->operators, "", op, &opset);
  return n->out[0];
}

hn_value *hn_make_turned(hn_pass_context *ctx, hone_node *n, hn_value *v, void (*order)(int32_t, int64_t *)) {
  int64_t perm[HONE_MAX_RANK], dim[HONE_MAX_RANK];
  order(v->desc.rank, perm);
  for (int32_t i = 0; i < v->desc.rank; i++) dim[i] = v->desc.dim[perm[i]];
  const hone_tensor_desc like = hone_desc(v->desc.dtype, v->desc.rank, dim);
  hn_value *t = hn_make_newest(ctx, n, "Transpose", &v, 1, &like);
  if (t && !hn_node_set_ints(t->producer, "perm", perm, (size_t)v->desc.rank))
    return hn_pass_memory(ctx), NULL;
  return t;
}

bool hn_inherit(hn_pass_context *ctx, hone_node *node, const hone_node *from) {
  return hn_node_inherit(node, from) || (hn_pass_memory(ctx), false);
}

bool hn_set_input(hn_pass_context *ctx, hone_node *node, uint32_t i, hn_value *v) {
  if (v) ctx->given = v;
  while (node->n_in < i)
    if (!hn_node_set_input(node, node->n_in, NULL)) return hn_pass_memory(ctx), false;
  return hn_node_set_input(node, i, v) || (hn_pass_memory(ctx), false);
}

bool hn_can_replace(const hn_value *old, const hn_value *with) {
  if (old == with) return false;
  if (!old->is_output) return true;
  return !with->is_output && !with->is_input && !old->is_input && with->graph == old->graph;
}

bool hn_replace(hn_pass_context *ctx, hn_value *old, hn_value *with) {
  ctx->given = with;
  return hn_value_replace(old, with) || (hn_pass_memory(ctx), false);
}

void hn_remove_unread(hone_node *n, int depth) {
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i] && hn_value_needed(n->out[i])) return;
  if (!hn_is_linked(n)) return;
  hone_node *producers[8];
  uint32_t k = 0;
  for (uint32_t i = 0; i < n->n_in && depth > 0; i++)
    if (n->in[i] && n->in[i]->producer && n->in[i]->producer->graph == n->graph && k < 8)
      producers[k++] = n->in[i]->producer;
  hn_node_remove(n);
  while (k > 0) hn_remove_unread(producers[--k], depth - 1);
}
