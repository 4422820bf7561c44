/* NGramHashMapping: for each token and each length n of 2 and more, its number and those of the n - 1 tokens
 * before it, each times an odd multiplier, joined by xor; modulo the size of each head's table. Where there
 * is no token before, or a text ended in between, another number stands for it. The last tokens are the
 * second result, for the call that goes on. */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/microsoft/generate/n_gram.h"

enum { IDS, MULTIPLIERS, SIZES, PAST, OFFSETS, END, SEGMENTS };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *ids = io->input[IDS];
  int64_t before, heads;
  hone_status s = hn_n_gram_check(io->node, &before, &heads, error);
  if (s) return s;
  if (ids->rank >= 0 && ids->rank != 2)
    return hn_op_bad(io->node, error, "input_ids have rank %d, expected 2", (int)ids->rank);
  const int64_t batch = hn_dim(ids, 0), all = before * heads, past[2] = {batch, before},
                tokens[2] = {batch, hn_dim(ids, 1)};
  s = hn_infer_vector(io, MULTIPLIERS, HONE_DIM_UNKNOWN, error);
  const int64_t given = hn_dim(io->input[MULTIPLIERS], 0);
  if (!s && given >= 0 && given <= before)
    s = hn_op_bad(io->node, error, "%lld multipliers for n-grams of up to %lld", (long long)given,
                  (long long)before + 1);
  if (!s) s = hn_infer_vector(io, SIZES, all, error);
  if (!s) s = hn_infer_dims(io, PAST, "past_ids", 2, past, error);
  if (!s) s = hn_infer_vector(io, OFFSETS, all, error);
  if (!s) s = hn_infer_dims(io, SEGMENTS, "segment_ids", 2, tokens, error);
  for (uint32_t i = MULTIPLIERS; i <= END && !s; i++)
    if (hn_has_input(io, i)) s = hn_infer_same_dtype(io, IDS, i, error);
  if (!s) s = hn_infer_dtype_in(io, SEGMENTS, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s && hn_has_input(io, END) && io->input[END]->rank >= 0 &&
      hn_dims_differ(hone_desc_count(io->input[END]), 1))
    s = hn_op_bad(io->node, error, "eos_token_id is not one number");
  if (s) return s;
  hn_infer_set(io, 0, ids->dtype, 3, (const int64_t[]){batch, tokens[1], all});
  hn_infer_set(io, 1, ids->dtype, 2, past);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *const *in = call->input, *ids = in[IDS];
  const bool end = hn_call_has(call, END);
  hn_n_gram_text t = {.ids = ids,
                      .past = hn_call_has(call, PAST) ? in[PAST] : NULL,
                      .multipliers = in[MULTIPLIERS],
                      .sizes = in[SIZES],
                      .offsets = hn_call_has(call, OFFSETS) ? in[OFFSETS] : NULL,
                      .segments = hn_call_has(call, SEGMENTS) ? in[SEGMENTS] : NULL,
                      .tokens = ids->desc.dim[1],
                      .fill = end ? hn_get_i64(in[END], 0) : hone_node_int(call->node, "pad_id", 0),
                      .ends = end && hone_node_int(call->node, "reset_on_eos", 0)};
  hone_status s = hn_n_gram_check(call->node, &t.before, &t.heads, error);
  if (!s) s = hn_n_gram_check_sizes(call->node, in[SIZES], error);
  if (s) return s;
  for (t.row = 0; t.row < ids->desc.dim[0]; t.row++, t.first += t.tokens) {
    for (int64_t i = 0; i < t.tokens; i++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      hn_n_gram_hash(&t, i, call->output[0], (t.first + i) * t.before * t.heads);
    }
    for (int64_t k = 0; call->n_outputs > 1 && call->output[1] && k < t.before; k++)
      hn_set_i64(call->output[1], t.row * t.before + k, hn_n_gram_token(&t, t.tokens - t.before + k));
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "max_ngram_size", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "n_head_per_ngram", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "pad_id", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "reset_on_eos", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(n_gram_hash_mapping) = {HONE_DESC_HEAD(hone_op_desc),
                              .domain = "com.microsoft",
                              .op_type = "NGramHashMapping",
                              .since = 1,
                              HN_INPUTS(3, 7),
                              HN_OUTPUTS(1, 2),
                              .types = HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64),
                              .attrs = attrs,
                              .infer = infer,
                              .reference = reference};
