/* GroupQueryAttention: attention with several heads of Q for each of K and V, and with caches of keys and
 * values, in which each input of a batch has its own length (seqlens_k is one less than that). New keys stand
 * behind the cached ones; a cache that has room for them keeps its size. With do_rotary Q and K are turned by
 * their positions first (RotaryEmbedding). */
#include "model/ops/microsoft/attention/grouped.h"

#include <math.h>

enum {
  Q,
  K,
  V,
  PAST_KEY,
  PAST_VALUE,
  LENGTHS,
  TOTAL,
  COS,
  SIN,
  POSITIONS,
  ADDED,
  SINK,
  K_SCALE,
  V_SCALE,
  Q_NORM,
  K_NORM,
  QUERY_LENGTHS
};
enum { Y, PRESENT_KEY, PRESENT_VALUE };
static hone_status check_attrs(const hone_infer *io, hone_error *error) {
  const hone_node *n = io->node;
  if (!hn_has_input(io, LENGTHS) || !hn_has_input(io, TOTAL))
    return hn_op_bad(n, error, "seqlens_k or total_sequence_length is left out");
  if (hn_has_input(io, K) != hn_has_input(io, V))
    return hn_op_bad(n, error, "key and value must be given together");
  static const char *const off[] = {"sliding_window_cache", "qk_output"};
  for (size_t i = 0; i < sizeof off / sizeof *off; i++)
    if (hone_node_int(n, off[i], 0) > 0) return hn_op_refuse(n, error, "%s", off[i]);
  for (uint32_t i = K_SCALE; i <= QUERY_LENGTHS; i++)
    if (hn_has_input(io, i)) return hn_op_refuse(n, error, "input %u", i);
  if (strcmp(hone_node_string(n, "k_quant_type", "NONE"), "NONE") != 0 ||
      strcmp(hone_node_string(n, "v_quant_type", "NONE"), "NONE") != 0)
    return hn_op_refuse(n, error, "a cache of codes");
  if (hn_has_input(io, PAST_KEY) != hn_has_input(io, PAST_VALUE))
    return hn_op_bad(n, error, "past_key and past_value must be given together");
  if (hone_node_int(n, "do_rotary", 0) && (!hn_has_input(io, COS) || !hn_has_input(io, SIN)))
    return hn_op_bad(n, error, "do_rotary without cos_cache and sin_cache");
  return HONE_OK;
}

static hone_status check_dims(const hone_infer *io, const hn_grouped *z, hone_error *error) {
  const int64_t all = z->size < 0 ? z->size : z->kv_heads * z->size, now[3] = {z->batch, z->queries, all},
                past[4] = {z->batch, z->kv_heads, z->room, z->size};
  const hone_tensor_desc *cos = hn_has_input(io, COS) ? io->input[COS] : NULL,
                         *bias = hn_has_input(io, ADDED) ? io->input[ADDED] : NULL;
  const int64_t cache[2] = {hn_dim(cos, 0), hn_dim(cos, 1)}, places[2] = {z->batch, z->queries};
  hone_status s = hn_infer_dims(io, K, "the key", 3, now, error);
  if (!s) s = hn_infer_dims(io, V, "the value", 3, now, error);
  if (!s) s = hn_infer_dims(io, PAST_KEY, "past_key", 4, past, error);
  if (!s) s = hn_infer_dims(io, PAST_VALUE, "past_value", 4, past, error);
  if (!s) s = hn_infer_dims(io, COS, "cos_cache", 2, cache, error);
  if (!s) s = hn_infer_dims(io, SIN, "sin_cache", 2, cache, error);
  if (!s && cos && cache[1] >= 0 && z->size >= 0 && 2 * cache[1] > z->size)
    s = hn_op_bad(io->node, error, "the caches turn %lld values of a head, which has %lld",
                  (long long)(2 * cache[1]), (long long)z->size);
  if (!s && hn_has_input(io, POSITIONS) && hone_desc_count(io->input[POSITIONS]) != 1)
    s = hn_infer_dims(io, POSITIONS, "position_ids", 2, places, error);
  if (!s && bias &&
      (bias->rank >= 0 && (bias->rank != 4 || (bias->dim[0] != 1 && hn_dims_differ(bias->dim[0], z->batch)))))
    s = hn_op_bad(io->node, error, "attention_bias is not for %lld inputs", (long long)z->batch);
  if (!s) s = hn_infer_dims(io, SINK, "head_sink", 1, &z->heads, error);
  return s;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q], *k = hn_has_input(io, K) ? io->input[K] : NULL,
                         *past = hn_has_input(io, PAST_KEY) ? io->input[PAST_KEY] : NULL;
  hn_grouped z;
  int64_t total;
  hone_status s = check_attrs(io, error);
  if (!s) s = hn_grouped_read(io->node, q, k, past, &z, error);
  if (!s) s = check_dims(io, &z, error);
  static const uint32_t same[] = {K, V, PAST_KEY, PAST_VALUE, COS, SIN, SINK};
  for (size_t i = 0; i < sizeof same / sizeof *same && !s; i++)
    s = hn_infer_same_dtype(io, Q, same[i], error);
  for (uint32_t i = LENGTHS; i <= TOTAL && !s; i++)
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s) s = hn_infer_vector(io, LENGTHS, HONE_DIM_UNKNOWN, error);
  if (!s) s = hn_infer_dtype_in(io, POSITIONS, HONE_TYPES(HONE_DTYPE_I64), error);
  if (s) return s;
  if (hn_infer_ints(io, TOTAL, &total, 1) != 1) total = HONE_DIM_UNKNOWN;
  const int64_t keys = total < 0 || z.room < 0 ? HONE_DIM_UNKNOWN : hn_max(z.room, total),
                all = z.size < 0 ? z.size : z.heads * z.size;
  const int64_t present[4] = {z.batch, z.kv_heads, keys, z.size};
  hn_infer_set(io, Y, q->dtype, 3, (const int64_t[]){z.batch, z.queries, all});
  hn_infer_set(io, PRESENT_KEY, q->dtype, 4, present);
  hn_infer_set(io, PRESENT_VALUE, q->dtype, 4, present);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  /* Of a node that leaves the cache out the new tokens are known alone. */
  const bool cached = io->n_outputs > PRESENT_KEY && io->output[PRESENT_KEY];
  const int64_t keys = cached ? hn_dim(io->output[PRESENT_KEY], 2) : hn_dim(io->input[0], 1);
  hn_cost_macs(cost, keys > 0 ? 2 * (double)keys * hn_known_count(io->output[Y]) : 0);
}

static const hone_tensor *given(const hone_call *call, uint32_t i) {
  return hn_call_has(call, i) ? call->input[i] : NULL;
}

/* How many tokens of the input stood in the cache before: none where the call is about all there are. */
static int64_t before(const hone_call *call, const hn_grouped *z, int64_t b) {
  if (hn_get_i64(call->input[TOTAL], 0) == z->queries) return 0;
  return hn_get_i64(call->input[LENGTHS], b) + 1 - z->queries;
}

/* Where the tokens stand: after those that are cached, or as the input says. */
static bool place(hone_call *call, const hn_grouped *z, hone_tensor *positions, hone_error *error) {
  const int64_t dim[2] = {z->batch, z->queries};
  const hone_tensor *p = given(call, POSITIONS);
  if (!hn_inner_tensor(call, HONE_DTYPE_I64, 2, dim, positions, error)) return false;
  for (int64_t i = 0; i < dim[0] * dim[1]; i++)
    ((int64_t *)positions->data)[i] =
        p ? hn_get_i64(p, hn_count(p) == 1 ? 0 : i) + (hn_count(p) == 1 ? i % dim[1] : 0)
          : hn_max(before(call, z, i / dim[1]), 0) + i % dim[1];
  return true;
}

/* A number beside the scores of each head, which takes a part of the weights and gives nothing: a key of
 * zeros before all others, whose score is that number, with a value of zeros. What else hides keys is added,
 * too. */
static hone_status sink(hone_call *call, const hn_grouped *z, int64_t old, hn_attend *a, hone_tensor *room,
                        hone_error *error) {
  const hone_tensor *number = given(call, SINK);
  const int64_t keys = old + z->queries, dim[4] = {1, z->heads, z->queries, keys + 1};
  if (!hn_inner_tensor(call, HONE_DTYPE_F32, 4, dim, room, error)) return HONE_ERROR_MEMORY;
  float *to = room->data;
  for (int64_t h = 0; h < z->heads; h++)
    for (int64_t q = 0; q < z->queries; q++, to += keys + 1) {
      const int64_t at = a->added && a->added->desc.dim[1] > 1 ? h * z->queries + q : q;
      to[0] = number ? (float)hn_get_f64(number, h) : 0.0f;
      for (int64_t k = 0; k < keys; k++) {
        const bool seen = (!a->causal || k <= old + q) && (a->window < 0 || k >= old + q - a->window);
        to[1 + k] = !seen ? -INFINITY : a->added ? ((const float *)a->added->data)[at * keys + k] : 0.0f;
      }
    }
  a->added = room, a->causal = false, a->window = -1;
  return HONE_OK;
}

static hone_status attend(hone_call *call, const hn_grouped *z, const hone_tensor part[3],
                          hone_tensor *const present[2], int64_t b, hone_error *error) {
  const hone_tensor *bias = given(call, ADDED), *added;
  const bool sinks = given(call, SINK) || hone_node_int(call->node, "smooth_softmax", 0) > 0;
  const int64_t old = before(call, z, b), window = hone_node_int(call->node, "local_window_size", -1),
                total = hn_max(z->room, hn_get_i64(call->input[TOTAL], 0));
  hone_tensor room, beside, q = hn_grouped_entry(&part[0], b), y = hn_grouped_entry(call->output[Y], b),
                            was[2], is[2];
  if (old < 0 || old > z->room || old + z->queries > total)
    return hn_op_bad(call->node, error,
                     "seqlens_k of input %lld is %lld, with %lld tokens and a cache of %lld", (long long)b,
                     (long long)(old + z->queries - 1), (long long)z->queries, (long long)z->room);
  for (int i = 0; i < 2; i++) {
    const hone_tensor *past = given(call, PAST_KEY + (uint32_t)i);
    is[i] = hn_grouped_entry(&part[1 + i], b);
    if (present[i]) hn_grouped_hand_on(z, past, &part[1 + i], b, old, present[i]);
    if (!hn_grouped_cached(call, z, past, q.desc.dtype, b, sinks, old, &was[i], error))
      return HONE_ERROR_MEMORY;
  }
  const hone_tensor one = bias ? hn_grouped_entry(bias, bias->desc.dim[0] == 1 ? 0 : b) : (hone_tensor){0};
  const hn_key_mask mask = {
      .bias = bias ? &one : NULL, .batch = 1, .queries = z->queries, .keys = old + z->queries};
  hone_status s = hn_key_mask_sum(call, &mask, &room, &added, error);
  if (s) return s;
  hn_attend a = {.q = &q,
                 .k = &is[0],
                 .v = &is[1],
                 .past_k = &was[0],
                 .past_v = &was[1],
                 .added = added,
                 .causal = hone_node_int(call->node, "causal", 1) != 0,
                 .window = window > 0 ? window - 1 : -1,
                 .scale = hone_node_float(call->node, "scale", 0),
                 .cap = hone_node_float(call->node, "softcap", 0),
                 .y = &y};
  if (sinks) s = sink(call, z, old, &a, &beside, error);
  return s ? s : hn_attend_run(call, &a, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *q = call->input[Q], *k = given(call, K), *past = given(call, PAST_KEY);
  hone_tensor part[3], *present[2];
  hn_grouped z;
  hone_status s =
      hn_grouped_read(call->node, &q->desc, k ? &k->desc : NULL, past ? &past->desc : NULL, &z, error);
  if (s) return s;
  if (hn_count(call->input[LENGTHS]) != z.batch)
    return hn_op_bad(call->node, error, "seqlens_k is not a number for each of %lld inputs",
                     (long long)z.batch);
  const int64_t room = hn_max(z.room, hn_get_i64(call->input[TOTAL], 0));
  for (int i = 0; i < 2; i++) {
    const uint32_t at = PRESENT_KEY + (uint32_t)i;
    const hone_tensor_desc d =
        hone_desc(q->desc.dtype, 4, (const int64_t[]){z.batch, z.kv_heads, room, z.size});
    present[i] = at < call->n_outputs ? call->output[at] : NULL;
    if (present[i] && !present[i]->data && (s = call->alloc_output(call, at, &d, error))) return s;
  }
  s = hn_grouped_split(call, &z, part, error);
  if (!s && hone_node_int(call->node, "do_rotary", 0)) {
    hone_tensor positions;
    if (!place(call, &z, &positions, error)) return HONE_ERROR_MEMORY;
    for (int i = 0; i < 2 && !s; i++)
      s = hn_grouped_turn(call, &z, call->input[COS], call->input[SIN], &positions, &part[i], error);
  }
  for (int64_t b = 0; b < z.batch && !s; b++) s = attend(call, &z, part, present, b, error);
  return s;
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "kv_num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "softcap", .type = HONE_ATTR_FLOAT},
                                       {.name = "local_window_size", .type = HONE_ATTR_INT},
                                       {.name = "do_rotary", .type = HONE_ATTR_INT},
                                       {.name = "rotary_interleaved", .type = HONE_ATTR_INT},
                                       {.name = "causal", .type = HONE_ATTR_INT},
                                       {.name = "smooth_softmax", .type = HONE_ATTR_INT},
                                       {.name = "sliding_window_cache", .type = HONE_ATTR_INT},
                                       {.name = "qk_output", .type = HONE_ATTR_INT},
                                       {.name = "qk_norm_epsilon", .type = HONE_ATTR_FLOAT},
                                       {.name = "q_norm_epsilon", .type = HONE_ATTR_FLOAT},
                                       {.name = "k_norm_epsilon", .type = HONE_ATTR_FLOAT},
                                       {.name = "kv_cache_bit_width", .type = HONE_ATTR_INT},
                                       {.name = "k_quant_type", .type = HONE_ATTR_STRING},
                                       {.name = "v_quant_type", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(group_query_attention) = {HONE_DESC_HEAD(hone_op_desc),
                                .domain = "com.microsoft",
                                .op_type = "GroupQueryAttention",
                                .since = 1,
                                HN_INPUTS(1, 17),
                                HN_OUTPUTS(1, 3),
                                .types = HN_TYPES_FLOAT,
                                .attrs = attrs,
                                .infer = infer,
                                .cost = cost,
                                .reference = reference,
                                .host_inputs = 1u << TOTAL};
