/* MultiHeadAttention(q, k, v, bias, mask...)  ->  Attention(q + bias, k + bias, v + bias, mask as f32...)
 * Attention of com.microsoft(x, w, bias...)   ->  the same of the three parts of x w + bias */
#include "optimize/passes/common/pass.h"

enum { MHA_Q, MHA_K, MHA_V, MHA_BIAS, MHA_MASK, MHA_ADDED, MHA_PAST_KEY, MHA_PAST_VALUE };
enum { X, W, BIAS, X_MASK, X_PAST, X_ADDED };

static bool wanted(const hone_node *n, uint32_t i) {
  return i < n->n_out && n->out[i] && hn_value_needed(n->out[i]);
}

static hn_value *make(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *const *in, uint32_t n_in,
                      hone_dtype type, int32_t rank, const int64_t *dim) {
  const hone_tensor_desc like = hone_desc(type, rank, dim);
  return hn_make_newest(ctx, n, op, in, n_in, &like);
}

static hn_value *shaped(hn_pass_context *ctx, hone_node *n, hn_value *v, int32_t rank, const int64_t *dim) {
  hn_value *shape = hn_make_ints(ctx, v->name, dim, rank);
  return shape ? make(ctx, n, "Reshape", (hn_value *const[]){v, shape}, 2, v->desc.dtype, rank, dim) : NULL;
}

/* From `from` on `size` indices of the last dimension. */
static hn_value *part(hn_pass_context *ctx, hone_node *n, hn_value *v, int64_t from, int64_t size) {
  const int32_t rank = v->desc.rank;
  const int64_t end = from + size, axis = rank - 1;
  int64_t dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) dim[i] = i == rank - 1 ? size : v->desc.dim[i];
  hn_value *in[4] = {v, hn_make_ints(ctx, v->name, &from, 1), hn_make_ints(ctx, v->name, &end, 1),
                     hn_make_ints(ctx, v->name, &axis, 1)};
  if (!in[1] || !in[2] || !in[3]) return NULL;
  return make(ctx, n, "Slice", in, 4, v->desc.dtype, rank, dim);
}

/* i32 masks as what is added: 0 where a key counts, else `filter`. */
static hn_value *filtered(hn_pass_context *ctx, hone_node *n, hn_value *mask, int64_t keys) {
  const hone_tensor_desc *d = &mask->desc, one = hone_desc(HONE_DTYPE_F32, 0, NULL),
                         zero = hone_desc(HONE_DTYPE_I32, 0, NULL);
  const double filter = (double)hone_node_float(n, "mask_filter_value", -10000.0f), none = 0;
  int64_t dim[4] = {d->dim[0], 1, d->rank == 3 ? d->dim[1] : 1, keys};
  hn_value *counts;
  if (d->rank == 1) {
    void *data;
    const hone_tensor_desc row = hone_desc(HONE_DTYPE_I32, 4, (const int64_t[]){1, 1, 1, keys});
    hn_value *places = hn_make_room(ctx, mask->name, &row, &data);
    for (int64_t i = 0; i < keys && places; i++) ((int32_t *)data)[i] = (int32_t)i;
    hn_value *ends = places ? shaped(ctx, n, mask, 4, (const int64_t[]){d->dim[0], 1, 1, 1}) : NULL;
    counts =
        ends ? make(ctx, n, "Less", (hn_value *const[]){places, ends}, 2, HONE_DTYPE_BOOL, 4, dim) : NULL;
  } else {
    hn_value *all = shaped(ctx, n, mask, 4, dim),
             *least = all ? hn_make_constant(ctx, mask->name, &zero, &(const int32_t){0}) : NULL;
    counts =
        least ? make(ctx, n, "Greater", (hn_value *const[]){all, least}, 2, HONE_DTYPE_BOOL, 4, dim) : NULL;
  }
  hn_value *in[3] = {counts, counts ? hn_make_floats(ctx, mask->name, &one, &none) : NULL,
                     counts ? hn_make_floats(ctx, mask->name, &one, &filter) : NULL};
  return in[1] && in[2] ? make(ctx, n, "Where", in, 3, HONE_DTYPE_F32, 4, dim) : NULL;
}

/* Why a mask stays, or NULL. */
static const char *odd_mask(const hn_value *mask, const hn_value *added, int64_t batch, int64_t queries,
                            int64_t keys) {
  const hone_tensor_desc *d = mask ? &mask->desc : NULL;
  if (added && added->desc.dim[3] != keys) return "attention_bias is longer than the keys";
  if (!d) return NULL;
  if (d->rank == 1) return d->dim[0] == batch ? NULL : "the mask has ends and starts";
  const bool fits =
      (d->rank == 2 && d->dim[1] == keys) || (d->rank == 3 && d->dim[1] == queries && d->dim[2] == keys);
  return fits ? NULL : "the mask has another form";
}

/* Both masks in one; *ok false: out of memory. */
static hn_value *sum_of_masks(hn_pass_context *ctx, hone_node *n, hn_value *mask, hn_value *added,
                              int64_t keys, bool *ok) {
  hn_value *v = mask ? filtered(ctx, n, mask, keys) : NULL;
  *ok = v || !mask;
  if (!v || !added) return v ? v : added;
  hone_tensor_desc all = v->desc;
  if (hn_broadcast_dims(&all, &added->desc, NULL)) return v;
  v = hn_make_newest(ctx, n, "Add", (hn_value *const[]){v, added}, 2, &all);
  *ok = v != NULL;
  return v;
}

/* ONNX's Attention with the node's attributes, its outputs those of the node as far as they are read. */
static hn_pass_result finish(hn_pass_context *ctx, hone_node *n, hn_value *const in[6], uint32_t outputs) {
  hn_value *out[3] = {0};
  const int64_t heads = hone_node_int(n, "num_heads", 1), queries = in[0]->desc.dim[in[0]->desc.rank - 2];
  for (uint32_t i = 0; i < outputs; i++) {
    if (i && !wanted(n, i)) continue;
    if (!(out[i] = hn_value_create(ctx->graph, NULL))) return hn_pass_memory(ctx);
    out[i]->desc = n->out[i]->desc;
  }
  uint32_t n_in = 6, n_out = out[2] ? 3 : out[1] ? 2 : 1;
  while (n_in > 3 && !in[n_in - 1]) n_in--;
  hone_node *a = hn_node_create(ctx->graph, n, "Attention", "", NULL, in, n_in, out, n_out);
  if (!a) return hn_pass_memory(ctx);
  int64_t opset;
  a->op = hn_op_newest(ctx->model->operators, "", "Attention", &opset);
  const float scale = hone_node_float(n, "scale", 0);
  if (!hn_inherit(ctx, a, n) || !hn_node_set_int(a, "q_num_heads", heads) ||
      !hn_node_set_int(a, "kv_num_heads", heads) ||
      /* A single query is the last of its tokens, however many keys there are. */
      !hn_node_set_int(a, "is_causal", queries > 1 && hone_node_int(n, "unidirectional", 0) != 0) ||
      (scale != 0 && !hn_node_set_float(a, "scale", scale)))
    return hn_pass_memory(ctx);
  hn_pass_hit(ctx, "attention of ONNX");
  for (uint32_t i = 0; i < outputs; i++)
    if (out[i] && !hn_replace(ctx, n->out[i], out[i])) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

static const char *unknown(const hone_node *n) {
  const bool caches = strcmp(n->op_type, "MultiHeadAttention") == 0;
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hone_tensor_desc *d = n->in[i] ? &n->in[i]->desc : NULL;
    const bool cache = caches && (i == MHA_PAST_KEY || i == MHA_PAST_VALUE); /* nothing may be in it yet */
    if (d && (!hone_desc_known(d) || (hone_desc_count(d) < 1 && !(cache && d->rank == 4 && d->dim[2] == 0))))
      return "a shape is not known, or empty";
  }
  return n->in[0]->desc.dtype == HONE_DTYPE_F32 ? NULL : "an operand is not f32";
}

static hn_pass_result open_multi(hn_pass_context *ctx, hone_node *n) {
  hn_value *k = hn_in(n, MHA_K), *v = hn_in(n, MHA_V), *bias = hn_in(n, MHA_BIAS),
           *past = hn_in(n, MHA_PAST_KEY);
  const char *why = unknown(n);
  if (!why && (!k || !v || n->in[0]->desc.rank != 3 || k->desc.rank != 3 || v->desc.rank != 3))
    why = "Q, K and V lie otherwise than side by side";
  if (!why && wanted(n, 3)) why = "the scores are read, too";
  if (why) return hn_pass_miss(ctx, "%s", why);
  const int64_t *q = n->in[0]->desc.dim, keys = k->desc.dim[1] + (past ? past->desc.dim[2] : 0);
  why = odd_mask(hn_in(n, MHA_MASK), hn_in(n, MHA_ADDED), q[0], q[1], keys);
  if (why) return hn_pass_miss(ctx, "%s", why);
  hn_value *in[6] = {n->in[0], k, v, NULL, past, hn_in(n, MHA_PAST_VALUE)};
  int64_t at = 0;
  for (int i = 0; i < 3 && bias; i++) {
    const int64_t size = in[i]->desc.dim[2];
    hn_value *b = part(ctx, n, bias, at, size);
    if (b) in[i] = hn_make_newest(ctx, n, "Add", (hn_value *const[]){in[i], b}, 2, &in[i]->desc);
    if (!b || !in[i]) return HN_PASS_FAIL;
    at += size;
  }
  bool ok;
  in[3] = sum_of_masks(ctx, n, hn_in(n, MHA_MASK), hn_in(n, MHA_ADDED), keys, &ok);
  return ok ? finish(ctx, n, in, n->n_out < 3 ? n->n_out : 3) : HN_PASS_FAIL;
}

static hn_pass_result open_one(hn_pass_context *ctx, hone_node *n) {
  const char *why = unknown(n);
  if (!why && (hn_in(n, X_PAST) || wanted(n, 1))) why = "it has a cache";
  if (why) return hn_pass_miss(ctx, "%s", why);
  const hone_tensor_desc *x = &n->in[X]->desc, *w = &n->in[W]->desc;
  size_t given;
  const int64_t *sizes = hone_node_ints(n, "qkv_hidden_sizes", &given), keys = x->dim[1];
  why = odd_mask(hn_in(n, X_MASK), hn_in(n, X_ADDED), x->dim[0], keys, keys);
  if (why) return hn_pass_miss(ctx, "%s", why);
  const int64_t dim[3] = {x->dim[0], x->dim[1], w->dim[1]};
  hn_value *all = make(ctx, n, "MatMul", n->in, 2, HONE_DTYPE_F32, 3, dim), *in[6] = {0};
  if (all && hn_in(n, BIAS))
    all = make(ctx, n, "Add", (hn_value *const[]){all, n->in[BIAS]}, 2, HONE_DTYPE_F32, 3, dim);
  int64_t at = 0;
  for (int i = 0; i < 3 && all; i++) {
    const int64_t size = given == 3 ? sizes[i] : w->dim[1] / 3;
    if (!(in[i] = part(ctx, n, all, at, size))) return HN_PASS_FAIL;
    at += size;
  }
  bool ok = all != NULL;
  if (ok) in[3] = sum_of_masks(ctx, n, hn_in(n, X_MASK), hn_in(n, X_ADDED), keys, &ok);
  return ok ? finish(ctx, n, in, 1) : HN_PASS_FAIL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "com.microsoft") != 0) return HN_PASS_NONE;
  if (hn_model_opset(ctx->model, "") < 10) return HN_PASS_NONE; /* Slice by inputs */
  if (strcmp(n->op_type, "MultiHeadAttention") == 0) return open_multi(ctx, n);
  return strcmp(n->op_type, "Attention") == 0 ? open_one(ctx, n) : HN_PASS_NONE;
}

HN_PASS(open_runtime_attention) = {
    .name = "open_runtime_attention",
    .level = 1,
    .about = "Attention and MultiHeadAttention of com.microsoft -> MatMul, Attention of ONNX",
    .visit = visit,
    .roots = HN_ROOTS("MultiHeadAttention", "Attention"),
};
