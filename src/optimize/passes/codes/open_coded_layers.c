/* DynamicQuantizeLSTM(x, constant codes...)     ->  LSTM(x, f32...)    (on devices)
 * QEmbedLayerNormalization(words, codes...)     ->  LayerNormalization of the sum of the decoded rows
 *
 * An LSTM's weights are read at every step: decoded once. What they meet is then not rounded to 8 bits, as
 * the operator has it and the processor's tactic does it. Tables are large, and few of their rows are read:
 * those rows are decoded. */
#include "model/ops/microsoft/codes/lstm_codes.h"
#include "optimize/passes/common/pass.h"

static bool wanted(const hone_node *n, uint32_t i) {
  return i < n->n_out && n->out[i] && hn_value_needed(n->out[i]);
}

static hn_value *decoded(hn_pass_context *ctx, hone_node *n, uint32_t codes, uint32_t scale) {
  const hone_tensor_desc d = hn_lstm_codes_desc(&n->in[codes]->desc);
  void *data;
  hn_value *v = hn_make_room(ctx, n->in[codes]->name, &d, &data);
  if (!v) return NULL;
  ctx->folded += (uint64_t)hone_desc_bytes(&d);
  hn_lstm_decode(hn_known(n->in[codes]), hn_known(n->in[scale]), hn_known(n->in[scale + 1]), data);
  return v;
}

static hn_pass_result open_lstm(hn_pass_context *ctx, hone_node *n) {
  static const uint32_t constant[] = {HN_DQ_LSTM_W,           HN_DQ_LSTM_R,       HN_DQ_LSTM_W_SCALE,
                                      HN_DQ_LSTM_W_SCALE + 1, HN_DQ_LSTM_R_SCALE, HN_DQ_LSTM_R_SCALE + 1};
  for (size_t i = 0; i < sizeof constant / sizeof *constant; i++)
    if (!hn_known(n->in[constant[i]])) return hn_pass_miss(ctx, "the weights are computed");
  if (ctx->options->processor)
    return hn_pass_miss(ctx, "its tactic reads the codes, and rounds what they meet");
  const uint64_t bytes = 4 * (uint64_t)(hone_desc_count(&n->in[HN_DQ_LSTM_W]->desc) +
                                        hone_desc_count(&n->in[HN_DQ_LSTM_R]->desc));
  if (bytes > ctx->options->fold_tensor_bytes || ctx->folded + bytes > ctx->options->fold_bytes)
    return hn_pass_miss(ctx, "the decoded weights would take %llu bytes", (unsigned long long)bytes);
  if (!hn_has_op(ctx, "LSTM")) return hn_pass_miss(ctx, "the opset has no LSTM");
  hn_value *in[HN_DQ_LSTM_PLAIN], *out[3] = {0};
  for (uint32_t i = 0; i < HN_DQ_LSTM_PLAIN; i++) in[i] = n->in[i];
  in[HN_DQ_LSTM_W] = decoded(ctx, n, HN_DQ_LSTM_W, HN_DQ_LSTM_W_SCALE);
  in[HN_DQ_LSTM_R] = in[HN_DQ_LSTM_W] ? decoded(ctx, n, HN_DQ_LSTM_R, HN_DQ_LSTM_R_SCALE) : NULL;
  if (!in[HN_DQ_LSTM_R]) return HN_PASS_FAIL;
  uint32_t n_in = HN_DQ_LSTM_PLAIN, n_out = n->n_out < 3 ? n->n_out : 3;
  while (n_in > 3 && !in[n_in - 1]) n_in--;
  for (uint32_t i = 0; i < n_out; i++) {
    if (!n->out[i]) continue;
    if (!(out[i] = hn_value_create(ctx->graph, NULL))) return hn_pass_memory(ctx);
    out[i]->desc = n->out[i]->desc;
  }
  hone_node *lstm = hn_node_create(ctx->graph, n, "LSTM", "", NULL, in, n_in, out, n_out);
  if (!lstm) return hn_pass_memory(ctx);
  int64_t opset;
  lstm->op = hn_op_newest(ctx->model->operators, "", "LSTM", &opset);
  if (!hn_inherit(ctx, lstm, n) || !hn_node_copy_attrs(lstm, n)) return hn_pass_memory(ctx);
  hn_pass_hit(ctx, "weights of 8 bits, decoded");
  for (uint32_t i = 0; i < n_out; i++)
    if (out[i] && !hn_replace(ctx, n->out[i], out[i])) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

enum { WORDS, SEGMENTS, WORD_TABLE, PLACE_TABLE, SEGMENT_TABLE, GAMMA, BETA, MASK, SCALES, ZEROS = 13 };

static hn_value *make(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *const *in, uint32_t n_in,
                      hone_dtype type, int32_t rank, const int64_t *dim) {
  const hone_tensor_desc like = hone_desc(type, rank, dim);
  for (uint32_t i = 0; i < n_in; i++)
    if (!in[i]) return NULL;
  return hn_make_newest(ctx, n, op, in, n_in, &like);
}

/* `codes`, of input `table`, as numbers. */
static hn_value *numbers(hn_pass_context *ctx, hone_node *n, uint32_t table, hn_value *codes) {
  const uint32_t i = table - WORD_TABLE;
  if (!codes) return NULL;
  return make(ctx, n, "DequantizeLinear", (hn_value *const[]){codes, n->in[SCALES + i], n->in[ZEROS + i]}, 3,
              HONE_DTYPE_F32, codes->desc.rank, codes->desc.dim);
}

/* Rows of a table by their numbers, of `like`'s dimensions. */
static hn_value *rows(hn_pass_context *ctx, hone_node *n, uint32_t table, hn_value *ids,
                      const hone_tensor_desc *like) {
  return numbers(ctx, n, table,
                 make(ctx, n, "Gather", (hn_value *const[]){n->in[table], ids}, 2, n->in[table]->desc.dtype,
                      like->rank, like->dim));
}

/* How many words of each input the mask keeps. */
static hn_value *counts(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor_desc *d = &n->in[WORDS]->desc, one = hone_desc(HONE_DTYPE_I32, 0, NULL);
  const int64_t axis = 1;
  hn_value *mask = hn_in(n, MASK);
  if (!mask) {
    void *data;
    const hone_tensor_desc none = hone_desc(HONE_DTYPE_I32, 1, d->dim);
    hn_value *v = hn_make_room(ctx, n->out[1]->name, &none, &data);
    if (v) memset(data, 0, (size_t)hone_desc_bytes(&none));
    return v ? make(ctx, n, "Identity", &v, 1, HONE_DTYPE_I32, 1, d->dim) : NULL;
  }
  hn_value *is = make(ctx, n, "Equal",
                      (hn_value *const[]){mask, hn_make_constant(ctx, mask->name, &one, &(const int32_t){1})},
                      2, HONE_DTYPE_BOOL, 2, d->dim);
  hn_value *v = make(ctx, n, "Cast", &is, 1, HONE_DTYPE_I32, 2, d->dim);
  if (v && !hn_node_set_int(v->producer, "to", HONE_DTYPE_I32)) return NULL;
  const bool by_input = hn_model_opset(ctx->model, "") >= 13;
  hn_value *in[2] = {v, by_input ? hn_make_ints(ctx, mask->name, &axis, 1) : NULL};
  v = make(ctx, n, "ReduceSum", in, by_input ? 2 : 1, HONE_DTYPE_I32, 1, d->dim);
  if (v && (!hn_node_set_int(v->producer, "keepdims", 0) ||
            (!by_input && !hn_node_set_ints(v->producer, "axes", &axis, 1))))
    return NULL;
  return v;
}

static hn_pass_result open_embedding(hn_pass_context *ctx, hone_node *n) {
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && (!hone_desc_known(&n->in[i]->desc) || hone_desc_count(&n->in[i]->desc) < 1))
      return hn_pass_miss(ctx, "a shape is not known, or empty");
  if (hn_model_opset(ctx->model, "") < 10) return hn_pass_miss(ctx, "the opset has no DequantizeLinear");
  const hone_tensor_desc *y = &n->out[0]->desc, *ids = &n->in[WORDS]->desc;
  const int64_t words = ids->dim[1];
  const hone_tensor_desc place = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){words, y->dim[2]}),
                         counted = hone_desc(HONE_DTYPE_I32, 1, &words);
  if (words > n->in[PLACE_TABLE]->desc.dim[0]) return hn_pass_miss(ctx, "more words than places");
  void *data;
  hn_value *at = hn_make_room(ctx, n->in[PLACE_TABLE]->name, &counted, &data);
  if (!at) return hn_pass_memory(ctx);
  for (int64_t i = 0; i < words; i++) ((int32_t *)data)[i] = (int32_t)i;
  hn_value *sum = rows(ctx, n, WORD_TABLE, n->in[WORDS], y);
  sum = make(ctx, n, "Add", (hn_value *const[]){sum, sum ? rows(ctx, n, PLACE_TABLE, at, &place) : NULL}, 2,
             HONE_DTYPE_F32, 3, y->dim);
  if (sum && hn_in(n, SEGMENTS))
    sum = make(ctx, n, "Add", (hn_value *const[]){sum, rows(ctx, n, SEGMENT_TABLE, n->in[SEGMENTS], y)}, 2,
               HONE_DTYPE_F32, 3, y->dim);
  hn_value *v = make(ctx, n, "LayerNormalization",
                     (hn_value *const[]){sum, sum ? numbers(ctx, n, GAMMA, n->in[GAMMA]) : NULL,
                                         sum ? numbers(ctx, n, BETA, n->in[BETA]) : NULL},
                     3, HONE_DTYPE_F32, 3, y->dim);
  hn_value *kept = v && wanted(n, 1) ? counts(ctx, n) : NULL;
  if (!v || (wanted(n, 1) && !kept) ||
      !hn_node_set_float(v->producer, "epsilon", hone_node_float(n, "epsilon", 1e-12f)))
    return ctx->status ? HN_PASS_FAIL : hn_pass_memory(ctx);
  hn_pass_hit(ctx, "rows of tables, decoded, and their normalisation");
  if (kept && !hn_replace(ctx, n->out[1], kept)) return HN_PASS_FAIL;
  if (!hn_replace(ctx, n->out[0], v)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !n->op || strcmp(n->domain, "com.microsoft") != 0) return HN_PASS_NONE;
  if (strcmp(n->op_type, "DynamicQuantizeLSTM") == 0) return open_lstm(ctx, n);
  return strcmp(n->op_type, "QEmbedLayerNormalization") == 0 && n->n_in == ZEROS + 5 && n->out[0]
             ? open_embedding(ctx, n)
             : HN_PASS_NONE;
}

HN_PASS(open_coded_layers) = {
    .name = "open_coded_layers",
    .level = 1,
    .about = "DynamicQuantizeLSTM, QEmbedLayerNormalization of com.microsoft -> LSTM, the sum of rows",
    .visit = visit,
    .roots = HN_ROOTS("DynamicQuantizeLSTM", "QEmbedLayerNormalization"),
};
