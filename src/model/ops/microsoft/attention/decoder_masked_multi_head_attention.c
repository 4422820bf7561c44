/* DecoderMaskedMultiHeadAttention: MultiHeadAttention for one token. Behind a cache, whose room both past and
 * present share where past_present_share_buffer is set; without a past K and V are all keys and values there
 * are, [batch, heads, keys, size]. */
#include "model/ops/microsoft/attention/decoding.h"

enum { Q, K, V, MASK, ADDED, PAST_KEY, PAST_VALUE, BEFORE, WIDTH, BEAMS, BIAS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

typedef struct sizes {
  int64_t batch, heads, size, room;
  bool packed, cross, shared;
} sizes;

static hone_status read(const hone_node *n, const hone_tensor_desc *q, const hone_tensor_desc *k,
                        const hone_tensor_desc *past, sizes *z, hone_error *error) {
  const int64_t all = hn_dim(q, 2);
  *z = (sizes){.batch = hn_dim(q, 0),
               .heads = hone_node_int(n, "num_heads", 0),
               .size = HONE_DIM_UNKNOWN,
               .room = past ? hn_dim(past, 2)
                       : k  ? hn_dim(k, 2)
                            : HONE_DIM_UNKNOWN,
               .packed = !k,
               .cross = k && !past,
               .shared = hone_node_int(n, "past_present_share_buffer", 0) != 0};
  if (z->heads < 1) return hn_op_bad(n, error, "num_heads is %lld", (long long)z->heads);
  if (z->packed && !past) return hn_op_bad(n, error, "there is neither a key nor a past");
  if (all >= 0 && (all % (z->packed ? 3 * z->heads : z->heads)))
    return hn_op_bad(n, error, "%lld values a token are not %lld heads", (long long)all, (long long)z->heads);
  if (all >= 0) z->size = all / (z->packed ? 3 * z->heads : z->heads);
  return HONE_OK;
}

static const hone_tensor_desc *input(const hone_infer *io, uint32_t i) {
  return hn_has_input(io, i) ? io->input[i] : NULL;
}

static hone_status check_dims(const hone_infer *io, const sizes *z, hone_error *error) {
  const int64_t all = z->size < 0 ? z->size : z->size * z->heads, now[3] = {z->batch, 1, all},
                cache[4] = {z->batch, z->heads, z->room, z->size};
  hone_status s =
      hn_infer_dims(io, Q, "the query", 3, (const int64_t[]){z->batch, 1, hn_dim(io->input[Q], 2)}, error);
  for (uint32_t i = K; i <= V && !s; i++)
    s = hn_infer_dims(io, i, "the key or the value", z->cross ? 4 : 3, z->cross ? cache : now, error);
  for (uint32_t i = PAST_KEY; i <= PAST_VALUE && !s; i++)
    s = hn_infer_dims(io, i, "the past", 4, cache, error);
  return s ? s : hn_infer_vector(io, BIAS, all < 0 ? all : 3 * all, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q], *k = input(io, K), *past = input(io, PAST_KEY);
  sizes z;
  hone_status s = read(io->node, q, k, past, &z, error);
  if (s) return s;
  if (hn_has_input(io, K) != hn_has_input(io, V) ||
      hn_has_input(io, PAST_KEY) != hn_has_input(io, PAST_VALUE))
    return hn_op_bad(io->node, error, "keys and values must be given together");
  if (z.shared && !z.cross && !hn_has_input(io, BEFORE))
    return hn_op_bad(io->node, error, "there is no past_sequence_length");
  s = check_dims(io, &z, error);
  static const uint32_t same[] = {K, V, PAST_KEY, PAST_VALUE, BIAS};
  for (size_t i = 0; i < sizeof same / sizeof *same && !s; i++)
    s = hn_infer_same_dtype(io, Q, same[i], error);
  if (!s) s = hn_key_mask_check(io, MASK, ADDED, z.batch, error);
  for (uint32_t i = BEFORE; i <= BEAMS && !s; i++)
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_I32), error);
  if (s) return s;
  if (z.cross && ((io->n_outputs > PRESENT_KEY && io->output[PRESENT_KEY]) ||
                  (io->n_outputs > PRESENT_VALUE && io->output[PRESENT_VALUE])))
    return hn_op_bad(io->node, error, "without a past there is no present");
  const int64_t keys = z.room < 0 || z.cross || z.shared ? z.room : z.room + 1,
                all = z.size < 0 ? z.size : z.size * z.heads, cache[4] = {z.batch, z.heads, keys, z.size};
  int64_t before;
  const int64_t seen = !z.shared || z.cross                         ? keys
                       : hn_infer_ints(io, BEFORE, &before, 1) == 1 ? before + 1
                                                                    : HONE_DIM_UNKNOWN;
  hn_infer_set(io, Y, q->dtype, 3, (const int64_t[]){z.batch, 1, all});
  hn_infer_set(io, PRESENT_KEY, q->dtype, 4, cache);
  hn_infer_set(io, PRESENT_VALUE, q->dtype, 4, cache);
  hn_infer_set(io, SCORES, q->dtype, 4, (const int64_t[]){z.batch, z.heads, 1, seen});
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *past = hn_has_input(io, PAST_KEY) ? io->input[PAST_KEY] : input(io, K);
  const int64_t keys = hn_dim(past, 2);
  hn_cost_macs(cost, keys > 0 ? 2 * (double)keys * hn_known_count(io->output[Y]) : 0);
}

static hone_status cross(hone_call *call, const sizes *z, const hone_tensor *q, hone_tensor *scores,
                         hone_error *error) {
  const hone_tensor *added;
  hone_tensor room;
  const hn_key_mask mask = {.keep = hn_call_has(call, MASK) ? call->input[MASK] : NULL,
                            .bias = hn_call_has(call, ADDED) ? call->input[ADDED] : NULL,
                            .filter = hone_node_float(call->node, "mask_filter_value", -10000.0f),
                            .batch = z->batch,
                            .queries = 1,
                            .keys = z->room};
  const hone_status s = hn_key_mask_sum(call, &mask, &room, &added, error);
  if (s) return s;
  const hn_attend a = {.q = q,
                       .k = call->input[K],
                       .v = call->input[V],
                       .added = added,
                       .window = -1,
                       .scale = hone_node_float(call->node, "scale", 0),
                       .y = call->output[Y],
                       .seen = scores};
  return hn_attend_run(call, &a, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *q = call->input[Q], *k = hn_call_has(call, K) ? call->input[K] : NULL,
                    *past = hn_call_has(call, PAST_KEY) ? call->input[PAST_KEY] : NULL,
                    *bias = hn_call_has(call, BIAS) ? call->input[BIAS] : NULL;
  hn_decoding d = {.keep = hn_call_has(call, MASK) ? call->input[MASK] : NULL,
                   .added = hn_call_has(call, ADDED) ? call->input[ADDED] : NULL,
                   .y = call->output[Y],
                   .scores = call->n_outputs > SCORES ? call->output[SCORES] : NULL};
  sizes z;
  hone_status s = read(call->node, &q->desc, k ? &k->desc : NULL, past ? &past->desc : NULL, &z, error);
  if (!s && !z.cross)
    s = hn_decoding_before(call, z.shared ? BEFORE : UINT32_MAX, z.room, z.room, &d.before, error);
  if (!s && !z.cross) s = hn_decoding_beams(call, WIDTH, BEAMS, z.batch, d.before, &d, error);
  if (s) return s;
  const int64_t hidden = z.heads * z.size, row = q->desc.dim[2], apart[4] = {z.batch, z.heads, 1, z.size};
  for (int i = 0; i < (z.cross ? 1 : 3); i++) {
    const hn_tokens from = z.packed ? hn_tokens_packed(q, 1, row, i * hidden, z.size)
                                    : hn_tokens_packed(call->input[i], 1, hidden, 0, z.size);
    if (!hn_tokens_gather(call, &from, bias, i * hidden, apart, &d.now[i], error)) return HONE_ERROR_MEMORY;
  }
  if (d.scores && !d.scores->data) {
    const int64_t seen[4] = {z.batch, z.heads, 1, z.cross ? z.room : d.before + 1};
    const hone_tensor_desc made = hone_desc(q->desc.dtype, 4, seen);
    if ((s = call->alloc_output(call, SCORES, &made, error))) return s;
  }
  if (z.cross) return cross(call, &z, &d.now[0], d.scores, error);
  for (uint32_t i = 0; i < 2; i++) {
    const hone_tensor *present = call->n_outputs > PRESENT_KEY + i ? call->output[PRESENT_KEY + i] : NULL;
    const int64_t is[4] = {z.batch, z.heads, z.shared ? z.room : z.room + 1, z.size};
    d.past[i] = *call->input[PAST_KEY + i];
    d.present[i] = (hone_tensor){hone_desc(q->desc.dtype, 4, is), present ? present->data : NULL};
  }
  return hn_decoding_run(call, &d, error);
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "mask_filter_value", .type = HONE_ATTR_FLOAT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "output_qk", .type = HONE_ATTR_INT},
                                       {.name = "past_present_share_buffer", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(decoder_masked_multi_head_attention) = {HONE_DESC_HEAD(hone_op_desc),
                                              .domain = "com.microsoft",
                                              .op_type = "DecoderMaskedMultiHeadAttention",
                                              .since = 1,
                                              HN_INPUTS(1, 11),
                                              HN_OUTPUTS(1, 4),
                                              .types = HN_TYPES_FLOAT,
                                              .attrs = attrs,
                                              .infer = infer,
                                              .cost = cost,
                                              .reference = reference,
                                              .host_inputs = 1u << BEFORE};
