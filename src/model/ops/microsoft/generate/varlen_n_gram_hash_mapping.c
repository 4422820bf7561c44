/* VarlenNGramHashMapping: NGramHashMapping of texts that lie one behind the other, with any number of tokens
 * each; and, where asked for, the last tokens after each of the first ones (state_update), so that a caller
 * can go on from any of them. */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/microsoft/common/packed_texts.h"
#include "model/ops/microsoft/generate/n_gram.h"

enum { IDS, MULTIPLIERS, SIZES, STARTS, PAST, OFFSETS, END, SEGMENTS, PAST_SEGMENTS, CAPTURED, INPUTS };
enum { HASHES, PRESENT, PRESENT_SEGMENTS, UPDATES };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *ids = io->input[IDS];
  int64_t before, heads, capacity;
  hone_status s = hn_n_gram_check(io->node, &before, &heads, error);
  if (!s) s = hn_texts_capacity(io, CAPTURED, &capacity, error);
  if (!s) s = hn_infer_vector(io, IDS, HONE_DIM_UNKNOWN, error);
  if (!s) s = hn_texts_infer(io, STARTS, CAPTURED, error);
  if (!s) s = hn_infer_vector(io, MULTIPLIERS, HONE_DIM_UNKNOWN, error);
  if (s) return s;
  const int64_t all = before * heads, batch = hn_texts_batch(io, STARTS), past[2] = {batch, before},
                given = hn_dim(io->input[MULTIPLIERS], 0);
  if (given >= 0 && given <= before)
    return hn_op_bad(io->node, error, "%lld multipliers for n-grams of up to %lld", (long long)given,
                     (long long)before + 1);
  s = hn_infer_vector(io, SIZES, all, error);
  if (!s) s = hn_infer_dims(io, PAST, "past_ids", 2, past, error);
  if (!s) s = hn_infer_vector(io, OFFSETS, all, error);
  if (!s) s = hn_infer_vector(io, SEGMENTS, hn_dim(ids, 0), error);
  if (!s) s = hn_infer_dims(io, PAST_SEGMENTS, "past_segment_ids", 2, past, error);
  for (uint32_t i = MULTIPLIERS; i <= END && !s; i++)
    if (i != STARTS) s = hn_infer_same_dtype(io, IDS, i, error);
  for (uint32_t i = SEGMENTS; i <= PAST_SEGMENTS && !s; i++)
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s && hn_has_input(io, END) && hn_dims_differ(hone_desc_count(io->input[END]), 1))
    s = hn_op_bad(io->node, error, "eos_token_id is not one number");
  if (!s && !hn_has_input(io, SEGMENTS) &&
      (hn_has_input(io, PAST_SEGMENTS) || (io->n_outputs > PRESENT_SEGMENTS && io->output[PRESENT_SEGMENTS])))
    s = hn_op_bad(io->node, error, "segments of the past, and none of the tokens");
  if (s) return s;
  hn_infer_set(io, HASHES, ids->dtype, 2, (const int64_t[]){hn_dim(ids, 0), all});
  hn_infer_set(io, PRESENT, ids->dtype, 2, past);
  hn_infer_set(io, PRESENT_SEGMENTS, HONE_DTYPE_I32, 2, past);
  hn_infer_set(io, UPDATES, ids->dtype, 3, (const int64_t[]){batch, capacity, before});
  return HONE_OK;
}

/* The `before` tokens that end with token `last`. */
static void put_state(const hn_n_gram_text *t, int64_t last, hone_tensor *out, int64_t at) {
  for (int64_t k = 0; k < t->before; k++)
    hn_set_i64(out, at + k, hn_n_gram_token(t, last + 1 - t->before + k));
}

/* The segment of token i, which is the first one's where nothing is known of the past. */
static int64_t segment_at(const hn_n_gram_text *t, int64_t i) {
  if (i < 0 && t->past_segments) return hn_get_i64(t->past_segments, (t->row + 1) * t->before + i);
  return hn_get_i64(t->segments, t->first + (i < 0 ? 0 : i));
}

static hone_tensor *wanted(const hone_call *call, uint32_t i) {
  return i < call->n_outputs ? call->output[i] : NULL;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *const *in = call->input;
  const bool end = hn_call_has(call, END);
  hone_tensor *present = wanted(call, PRESENT), *segments = wanted(call, PRESENT_SEGMENTS),
              *updates = wanted(call, UPDATES);
  const int64_t batch = hn_count(in[STARTS]) - 1, pad = hone_node_int(call->node, "pad_id", 0),
                capacity = hone_node_int(call->node, "state_update_capacity", 0);
  hn_n_gram_text t = {.ids = in[IDS],
                      .past = hn_call_has(call, PAST) ? in[PAST] : NULL,
                      .multipliers = in[MULTIPLIERS],
                      .sizes = in[SIZES],
                      .offsets = hn_call_has(call, OFFSETS) ? in[OFFSETS] : NULL,
                      .segments = hn_call_has(call, SEGMENTS) ? in[SEGMENTS] : NULL,
                      .past_segments = hn_call_has(call, PAST_SEGMENTS) ? in[PAST_SEGMENTS] : NULL,
                      .fill = end ? hn_get_i64(in[END], 0) : pad,
                      .ends = end && hone_node_int(call->node, "reset_on_eos", 0)};
  hone_status s = hn_n_gram_check(call->node, &t.before, &t.heads, error);
  if (!s) s = hn_n_gram_check_sizes(call->node, in[SIZES], error);
  if (!s) s = hn_texts_check(call->node, in[STARTS], in[IDS]->desc.dim[0], error);
  if (s) return s;
  for (t.row = 0; t.row < batch; t.row++) {
    t.first = hn_get_i64(in[STARTS], t.row);
    t.tokens = hn_get_i64(in[STARTS], t.row + 1) - t.first;
    for (int64_t i = 0; i < t.tokens; i++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      hn_n_gram_hash(&t, i, call->output[HASHES], (t.first + i) * t.before * t.heads);
    }
    if (present) put_state(&t, t.tokens - 1, present, t.row * t.before);
    for (int64_t k = 0; segments && k < t.before; k++)
      hn_set_i64(segments, t.row * t.before + k, segment_at(&t, t.tokens - t.before + k));
    if (!updates) continue;
    const int64_t captured = hn_texts_captured(call, CAPTURED, t.row, t.tokens, capacity);
    for (int64_t i = 0; i < capacity; i++) {
      const int64_t at = (t.row * capacity + i) * t.before;
      if (i < captured) put_state(&t, i, updates, at);
      for (int64_t k = 0; i >= captured && k < t.before; k++) hn_set_i64(updates, at + k, pad);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "max_ngram_size", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "n_head_per_ngram", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "pad_id", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "reset_on_eos", .type = HONE_ATTR_INT},
                                       {.name = "state_update_capacity", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(varlen_n_gram_hash_mapping) = {HONE_DESC_HEAD(hone_op_desc),
                                     .domain = "com.microsoft",
                                     .op_type = "VarlenNGramHashMapping",
                                     .since = 1,
                                     HN_INPUTS(4, INPUTS),
                                     HN_OUTPUTS(1, 4),
                                     .types = HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64),
                                     .attrs = attrs,
                                     .infer = infer,
                                     .reference = reference};
