/* Attention: y = softmax(cap(scale Q K') + bias) V, head by head. Several heads of Q may share one of K and
 * V. Keys and values of earlier calls come before this call's (past_key, past_value), or lie in K and V
 * already, of which then only the first nonpad_kv_seqlen count. The bias is the mask, and -inf for keys that
 * a query must not see: behind its own position (is_causal) or outside of its window; a query that sees none
 * gives zeros.
 *
 * What the definition computes step by step is rounded to the operands' type step by step. */
#include "model/ops/attention/heads.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

static int64_t at(const hone_tensor_desc *d, int32_t i) { return d->rank > i ? d->dim[i] : HONE_DIM_UNKNOWN; }
static bool differ(int64_t a, int64_t b) { return a >= 0 && b >= 0 && a != b; }

static hone_status check_attrs(const hone_infer *io, hone_error *error) {
  const int64_t mode = hone_node_int(io->node, "qk_matmul_output_mode", 0),
                left = hone_node_int(io->node, "left_window_size", -1),
                right = hone_node_int(io->node, "right_window_size", -1),
                precision = hone_node_int(io->node, "softmax_precision", HONE_DTYPE_F32);
  if (mode < 0 || mode > 3)
    return hn_op_bad(io->node, error, "qk_matmul_output_mode is %lld", (long long)mode);
  if (left < -1 || right < -1)
    return hn_op_bad(io->node, error, "a window of %lld and %lld keys", (long long)left, (long long)right);
  if (precision < 1 || precision >= HONE_DTYPE_COUNT || !(HN_TYPES_FLOAT & HONE_TYPES(precision)))
    return hn_op_bad(io->node, error, "softmax_precision is %lld", (long long)precision);
  if (hn_has_input(io, PAST_KEY) != hn_has_input(io, PAST_VALUE))
    return hn_op_bad(io->node, error, "past_key and past_value must be given together");
  if (hn_has_input(io, LENGTHS) && hn_has_input(io, PAST_KEY))
    return hn_op_bad(io->node, error, "nonpad_kv_seqlen cannot be given together with past_key");
  return HONE_OK;
}

static hone_status check_heads(const hone_node *node, const hn_heads *q, const hn_heads *k, const hn_heads *v,
                               hone_error *error) {
  if (differ(q->batch, k->batch) || differ(k->batch, v->batch))
    return hn_op_bad(node, error, "Q, K and V are batches of %lld, %lld and %lld", (long long)q->batch,
                     (long long)k->batch, (long long)v->batch);
  if (differ(q->size, k->size))
    return hn_op_bad(node, error, "a head of Q has %lld values, one of K %lld", (long long)q->size,
                     (long long)k->size);
  if (differ(k->heads, v->heads) || differ(k->tokens, v->tokens))
    return hn_op_bad(node, error, "K is %lld heads of %lld tokens, V %lld heads of %lld", (long long)k->heads,
                     (long long)k->tokens, (long long)v->heads, (long long)v->tokens);
  if (k->heads == 0 || (q->heads >= 0 && k->heads > 0 && q->heads % k->heads))
    return hn_op_bad(node, error, "%lld heads of Q are no multiple of %lld heads of K", (long long)q->heads,
                     (long long)k->heads);
  return HONE_OK;
}

/* past_key or past_value: [batch, heads, tokens, size] with the heads of `now`. */
static hone_status check_past(const hone_infer *io, uint32_t i, const hn_heads *now, int64_t *tokens,
                              hone_error *error) {
  const hone_tensor_desc *d = hn_has_input(io, i) ? io->input[i] : NULL;
  *tokens = d ? at(d, 2) : 0;
  if (!d || d->rank < 0) return HONE_OK;
  if (d->rank != 4 || differ(d->dim[0], now->batch) || differ(d->dim[1], now->heads) ||
      differ(d->dim[3], now->size)) {
    char text[96];
    return hn_op_bad(io->node, error, "%s, %s, is not %lld x %lld heads of %lld values",
                     i == PAST_KEY ? "past_key" : "past_value", hone_desc_format(d, text, sizeof text),
                     (long long)now->batch, (long long)now->heads, (long long)now->size);
  }
  return HONE_OK;
}

/* The last dimension may be shorter than the keys are; the others broadcast. */
static hone_status check_mask(const hone_node *node, const hone_tensor_desc *m, const hn_heads *q,
                              int64_t keys, hone_error *error) {
  const int64_t want[4] = {q->batch, q->heads, q->tokens, keys};
  if (!m || m->rank < 0) return HONE_OK;
  bool fits = m->rank >= 1 && m->rank <= 4;
  for (int32_t i = 0; i < m->rank && fits; i++) {
    const int64_t n = m->dim[i], of = want[4 - m->rank + i];
    fits = n < 0 || of < 0 || (i == m->rank - 1 ? n <= of : n == of || n == 1);
  }
  char text[96];
  return fits ? HONE_OK
              : hn_op_bad(node, error,
                          "the mask, %s, does not fit %lld x %lld heads of %lld queries and %lld keys",
                          hone_desc_format(m, text, sizeof text), (long long)q->batch, (long long)q->heads,
                          (long long)q->tokens, (long long)keys);
}

static hone_status find_heads(const hone_node *node, const hone_tensor_desc *q, const hone_tensor_desc *k,
                              const hone_tensor_desc *v, hn_heads out[3], hone_error *error) {
  hone_status s = hn_heads_of(node, "Q", q, "q_num_heads", &out[Q], error);
  if (!s) s = hn_heads_of(node, "K", k, "kv_num_heads", &out[K], error);
  if (!s) s = hn_heads_of(node, "V", v, "kv_num_heads", &out[V], error);
  return s ? s : check_heads(node, &out[Q], &out[K], &out[V], error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q], *k = io->input[K], *v = io->input[V];
  hn_heads h[3];
  int64_t before, before_value;
  hone_status s = check_attrs(io, error);
  if (!s && q->rank >= 0 && ((k->rank >= 0 && k->rank != q->rank) || (v->rank >= 0 && v->rank != q->rank)))
    s = hn_op_bad(io->node, error, "Q, K and V have ranks %d, %d and %d", (int)q->rank, (int)k->rank,
                  (int)v->rank);
  if (!s) s = find_heads(io->node, q, k, v, h, error);
  if (!s) s = hn_infer_same_dtype(io, Q, K, error);
  if (!s) s = hn_infer_same_dtype(io, Q, PAST_KEY, error);
  if (!s) s = hn_infer_same_dtype(io, V, PAST_VALUE, error);
  if (!s) s = hn_infer_dtype_in(io, V, HN_TYPES_FLOAT, error);
  if (!s) s = hn_infer_dtype_in(io, MASK, HN_TYPES_NUMBER | HN_TYPES_BOOL, error);
  if (!s) s = hn_infer_dtype_in(io, LENGTHS, HONE_TYPES(HONE_DTYPE_I64), error);
  if (!s) s = hn_infer_vector(io, LENGTHS, h[Q].batch, error);
  if (!s) s = check_past(io, PAST_KEY, &h[K], &before, error);
  if (!s) s = check_past(io, PAST_VALUE, &h[V], &before_value, error);
  if (!s && differ(before, before_value))
    s = hn_op_bad(io->node, error, "past_key has %lld tokens, past_value %lld", (long long)before,
                  (long long)before_value);
  const int64_t keys = s || before < 0 || h[K].tokens < 0 ? HONE_DIM_UNKNOWN : before + h[K].tokens;
  if (!s) s = check_mask(io->node, hn_has_input(io, MASK) ? io->input[MASK] : NULL, &h[Q], keys, error);
  if (s) return s;
  const int64_t width = h[Q].heads < 0 || h[V].size < 0 ? HONE_DIM_UNKNOWN : h[Q].heads * h[V].size;
  const int64_t y4[4] = {h[Q].batch, h[Q].heads, h[Q].tokens, h[V].size},
                y3[3] = {h[Q].batch, h[Q].tokens, width}, key[4] = {h[K].batch, h[K].heads, keys, h[K].size},
                value[4] = {h[V].batch, h[V].heads, keys, h[V].size},
                score[4] = {h[Q].batch, h[Q].heads, h[Q].tokens, keys};
  hn_infer_set(io, Y, q->dtype, q->rank, q->rank == 3 ? y3 : y4);
  hn_infer_set(io, PRESENT_KEY, k->dtype, 4, key);
  hn_infer_set(io, PRESENT_VALUE, v->dtype, 4, value);
  hn_infer_set(io, SCORES, q->dtype, 4, score);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *k = io->input[K], *past = hn_has_input(io, PAST_KEY) ? io->input[PAST_KEY] : NULL;
  const int64_t now = k->rank == 3 ? at(k, 1) : at(k, 2), before = past ? at(past, 2) : 0;
  const double keys = now < 0 || before < 0 ? 0 : (double)(now + before);
  hn_cost_macs(cost, keys * (hn_known_count(io->input[Q]) + hn_known_count(io->output[Y])));
}

/* ---------------------------------------------------------------- one call */

typedef struct work {
  hn_heads of[3];
  hone_dtype type, softmax; /* what steps are rounded to */
  int64_t before, keys, left, right, mode;
  bool causal;
  double root, cap; /* sqrt(scale) in `type` */
  double *q, *k, *v, *score, *bias, *y;
} work;

static double rounded(double v, hone_dtype to) {
  switch (to) {
  case HONE_DTYPE_F32: return (double)(float)v;
  case HONE_DTYPE_F16: return (double)hn_f16_to_f32(hn_f64_to_f16(v));
  case HONE_DTYPE_BF16: return (double)hn_bf16_to_f32(hn_f64_to_bf16(v));
  default: return v;
  }
}

static hone_status prepare(hone_call *call, work *w, hone_error *error) {
  const hone_node *node = call->node;
  const hone_tensor *const *in = call->input;
  hone_status s = find_heads(node, &in[Q]->desc, &in[K]->desc, &in[V]->desc, w->of, error);
  if (s) return s;
  const double scale = hone_node_has(node, "scale") ? (double)hone_node_float(node, "scale", 1)
                                                    : 1 / sqrt((double)w->of[Q].size);
  w->type = in[Q]->desc.dtype;
  w->softmax = (hone_dtype)hone_node_int(node, "softmax_precision", w->type);
  w->before = hn_call_has(call, PAST_KEY) ? in[PAST_KEY]->desc.dim[2] : 0;
  w->keys = w->before + w->of[K].tokens;
  w->left = hone_node_int(node, "left_window_size", -1);
  w->right = hone_node_int(node, "right_window_size", -1);
  w->mode = hone_node_int(node, "qk_matmul_output_mode", 0);
  w->causal = hone_node_int(node, "is_causal", 0) != 0;
  w->root = rounded(sqrt(scale), w->type);
  w->cap = (double)hone_node_float(node, "softcap", 0);
  s = check_mask(node, hn_call_has(call, MASK) ? &in[MASK]->desc : NULL, &w->of[Q], w->keys, error);
  if (s) return s;
  w->q = hn_scratch(call, w->of[Q].size, sizeof *w->q, error);
  w->k = w->q ? hn_scratch(call, w->keys * w->of[K].size, sizeof *w->k, error) : NULL;
  w->v = w->k ? hn_scratch(call, w->keys * w->of[V].size, sizeof *w->v, error) : NULL;
  w->score = w->v ? hn_scratch(call, w->keys, sizeof *w->score, error) : NULL;
  w->bias = w->score ? hn_scratch(call, w->keys, sizeof *w->bias, error) : NULL;
  w->y = w->bias ? hn_scratch(call, w->of[V].size, sizeof *w->y, error) : NULL;
  return w->y ? HONE_OK : HONE_ERROR_MEMORY;
}

/* Keys or values of one head, those of the past first; they are also this head's part of what is handed on.
 */
static void gather(hone_call *call, const work *w, int which, int64_t b, int64_t h, double *to) {
  const hn_heads *now = &w->of[which];
  const uint32_t past = which == K ? PAST_KEY : PAST_VALUE,
                 present = which == K ? PRESENT_KEY : PRESENT_VALUE;
  const int64_t one = b * now->heads + h, size = now->size;
  if (w->before) hn_load_f64(to, call->input[past], one * w->before * size, w->before * size);
  for (int64_t t = 0; t < now->tokens; t++)
    hn_load_f64(to + (w->before + t) * size, call->input[which], hn_heads_at(now, b, h, t), size);
  if (present < call->n_outputs && call->output[present])
    hn_store_f64(call->output[present], one * w->keys * size, to, w->keys * size);
}

/* The mask's elements for a query; bool: 0 or -inf. Those that it lacks at the end are -inf. */
static void read_mask(const hone_call *call, const work *w, int64_t b, int64_t h, int64_t q, double *bias) {
  const hone_tensor *m = hn_call_has(call, MASK) ? call->input[MASK] : NULL;
  for (int64_t k = 0; k < w->keys; k++) bias[k] = 0;
  if (!m) return;
  const int64_t index[3] = {b, h, q}, n = m->desc.dim[m->desc.rank - 1];
  int64_t row = 0;
  for (int32_t i = 0; i < m->desc.rank - 1; i++) {
    const int64_t d = m->desc.dim[i];
    row = row * d + (d == 1 ? 0 : index[4 - m->desc.rank + i]);
  }
  hn_load_f64(bias, m, row * n, n);
  if (m->desc.dtype == HONE_DTYPE_BOOL)
    for (int64_t k = 0; k < n; k++) bias[k] = bias[k] != 0 ? 0 : -INFINITY;
  for (int64_t k = n; k < w->keys; k++) bias[k] = -INFINITY;
}

/* The bias of a query; false: it sees no key. */
static bool set_bias(const hone_call *call, const work *w, int64_t b, int64_t h, int64_t q) {
  const bool counted = hn_call_has(call, LENGTHS);
  const int64_t valid = counted ? hn_get_i64(call->input[LENGTHS], b) : w->keys,
                place = (counted ? valid - w->of[Q].tokens : w->before) + q;
  bool any = false;
  read_mask(call, w, b, h, q, w->bias);
  for (int64_t k = 0; k < w->keys; k++) {
    if (k >= valid || (w->causal && k > place) || (w->left >= 0 && place - k > w->left) ||
        (w->right >= 0 && k - place > w->right))
      w->bias[k] = -INFINITY;
    any |= w->bias[k] != -INFINITY;
  }
  return any;
}

/* score = softmax(score) in the type that the node wants. */
static void softmax(const work *w) {
  double top = -INFINITY, all = 0;
  for (int64_t k = 0; k < w->keys; k++) {
    w->score[k] = rounded(w->score[k], w->softmax);
    top = w->score[k] > top ? w->score[k] : top;
  }
  for (int64_t k = 0; k < w->keys; k++)
    all += w->score[k] = rounded(exp(rounded(w->score[k] - top, w->softmax)), w->softmax);
  all = rounded(all, w->softmax);
  for (int64_t k = 0; k < w->keys; k++)
    w->score[k] = rounded(rounded(w->score[k] / all, w->softmax), w->type);
}

static void attend(hone_call *call, const work *w, int64_t b, int64_t h, int64_t q) {
  const int64_t size = w->of[K].size, wide = w->of[V].size;
  hone_tensor *shown = SCORES < call->n_outputs ? call->output[SCORES] : NULL;
  const int64_t row = ((b * w->of[Q].heads + h) * w->of[Q].tokens + q) * w->keys;
  const bool any = set_bias(call, w, b, h, q);
  hn_load_f64(w->q, call->input[Q], hn_heads_at(&w->of[Q], b, h, q), size);
  for (int64_t i = 0; i < size; i++) w->q[i] = rounded(w->q[i] * w->root, w->type);
  for (int64_t k = 0; k < w->keys; k++) {
    double dot = 0;
    for (int64_t i = 0; i < size; i++) dot += w->q[i] * w->k[k * size + i];
    w->score[k] = rounded(dot, w->type);
  }
  if (shown && w->mode == 0) hn_store_f64(shown, row, w->score, w->keys);
  for (int64_t k = 0; k < w->keys && w->cap > 0; k++)
    w->score[k] = rounded(w->cap * tanh(w->score[k] / w->cap), w->type);
  if (shown && w->mode == 1) hn_store_f64(shown, row, w->score, w->keys);
  for (int64_t k = 0; k < w->keys; k++) w->score[k] = rounded(w->score[k] + w->bias[k], w->type);
  if (shown && w->mode == 2) hn_store_f64(shown, row, w->score, w->keys);
  if (any)
    softmax(w);
  else
    memset(w->score, 0, (size_t)w->keys * sizeof *w->score);
  if (shown && w->mode == 3) hn_store_f64(shown, row, w->score, w->keys);
  for (int64_t i = 0; i < wide; i++) {
    w->y[i] = 0;
    for (int64_t k = 0; k < w->keys && any; k++) w->y[i] += w->score[k] * w->v[k * wide + i];
  }
  const hn_heads y = {w->of[Q].packed, w->of[Q].batch, w->of[Q].heads, w->of[Q].tokens, wide};
  hn_store_f64(call->output[Y], hn_heads_at(&y, b, h, q), w->y, wide);
}

/* The numbers of keys come with the data: no more than there are. */
static hone_status check_lengths(const hone_call *call, const work *w, hone_error *error) {
  for (int64_t b = 0; hn_call_has(call, LENGTHS) && b < w->of[Q].batch; b++) {
    const int64_t n = hn_get_i64(call->input[LENGTHS], b);
    if (n < 0 || n > w->keys)
      return hn_op_bad(call->node, error, "nonpad_kv_seqlen[%lld] is %lld, expected 0 to %lld", (long long)b,
                       (long long)n, (long long)w->keys);
  }
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  work w = {0};
  hone_status s = prepare(call, &w, error);
  if (!s) s = check_lengths(call, &w, error);
  if (s) return s;
  const int64_t each = w.of[Q].heads / w.of[K].heads;
  for (int64_t b = 0; b < w.of[Q].batch; b++)
    for (int64_t h = 0; h < w.of[K].heads; h++) {
      gather(call, &w, K, b, h, w.k);
      gather(call, &w, V, b, h, w.v);
      for (int64_t i = 0; i < w.keys * w.of[K].size; i++) w.k[i] = rounded(w.k[i] * w.root, w.type);
      for (int64_t q = 0; q < each * w.of[Q].tokens; q++) {
        if (call->stopped(call)) return HONE_ERROR_CANCELLED;
        attend(call, &w, b, h * each + q / w.of[Q].tokens, q % w.of[Q].tokens);
      }
    }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "is_causal", .type = HONE_ATTR_INT},
                                       {.name = "kv_num_heads", .type = HONE_ATTR_INT},
                                       {.name = "q_num_heads", .type = HONE_ATTR_INT},
                                       {.name = "qk_matmul_output_mode", .type = HONE_ATTR_INT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "softcap", .type = HONE_ATTR_FLOAT},
                                       {.name = "softmax_precision", .type = HONE_ATTR_INT},
                                       {.name = "left_window_size", .type = HONE_ATTR_INT, .since = 25},
                                       {.name = "right_window_size", .type = HONE_ATTR_INT, .since = 25},
                                       {0}};

HN_OP(attention) = {HN_OP_HEAD,       .op_type = "Attention",  .since = 23,    HN_INPUTS(3, 7),
                    HN_OUTPUTS(1, 4), .types = HN_TYPES_FLOAT, .attrs = attrs, .infer = infer,
                    .cost = cost,     .reference = reference};
