/* GroupQueryAttention: attention with several heads of Q for each of K and V, and with caches of keys and
 * values, in which each input of a batch has its own length (seqlens_k is one less than that). New keys stand
 * behind the cached ones; a cache that has room for them keeps its size. With do_rotary Q and K are turned by
 * their positions first (RotaryEmbedding), and before that each head is normalised where it has weights for
 * it. Of the new tokens query_seqlens says how many are some. A cache may be codes, or floats of 16 bits
 * where Q has 32, and what is seen is what they say; or a window (sliding_window_cache), from which the
 * oldest tokens are dropped. */
#include "model/ops/microsoft/attention/cache_codes.h"
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
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };
enum { SCORES_NONE, SCORES_EARLY, SCORES_LATE }; /* qk_output: before Softmax, behind it */

/* The sizes, and what the caches are: of keys and of values. */
typedef struct cached_heads {
  hn_grouped z;
  hn_cache_codes codes[2];
  int64_t window; /* tokens that a cache keeps at least; 0: it keeps all */
} cached_heads;

static hone_status check_attrs(const hone_infer *io, hone_error *error) {
  const hone_node *n = io->node;
  if (!hn_has_input(io, LENGTHS) || !hn_has_input(io, TOTAL))
    return hn_op_bad(n, error, "seqlens_k or total_sequence_length is left out");
  if (hn_has_input(io, K) != hn_has_input(io, V))
    return hn_op_bad(n, error, "key and value must be given together");
  const int64_t scores = hone_node_int(n, "qk_output", SCORES_NONE);
  if (scores < SCORES_NONE || scores > SCORES_LATE)
    return hn_op_bad(n, error, "qk_output is %lld", (long long)scores);
  if ((scores != SCORES_NONE) != (io->n_outputs > SCORES && io->output[SCORES]))
    return hn_op_bad(n, error, "qk_output is %lld, and output %d is %s", (long long)scores, (int)SCORES,
                     scores ? "not there" : "wanted");
  if (hn_has_input(io, PAST_KEY) != hn_has_input(io, PAST_VALUE))
    return hn_op_bad(n, error, "past_key and past_value must be given together");
  if (hone_node_int(n, "do_rotary", 0) && (!hn_has_input(io, COS) || !hn_has_input(io, SIN)))
    return hn_op_bad(n, error, "do_rotary without cos_cache and sin_cache");
  if (hn_has_input(io, Q_NORM) != hn_has_input(io, K_NORM))
    return hn_op_bad(n, error, "q_norm_weight and k_norm_weight must be given together");
  if (hn_has_input(io, QUERY_LENGTHS) && (!hn_has_input(io, PAST_KEY) || !hone_node_int(n, "causal", 1)))
    return hn_op_bad(n, error, "query_seqlens without a cache, or with causal=0");
  return HONE_OK;
}

/* The codes' bytes of a head become its values. */
static hone_tensor_desc cache_of(const hone_tensor_desc *past, const hn_cache_codes *codes) {
  hone_tensor_desc d = *past;
  if (codes->bits && d.rank == 4 && d.dim[3] > 0) d.dim[3] = d.dim[3] * 8 / codes->bits;
  return d;
}

static hone_status read(const hone_node *n, const hone_tensor_desc *q, const hone_tensor_desc *k,
                        const hone_tensor_desc *past, cached_heads *c, hone_error *error) {
  *c = (cached_heads){.window = 0};
  hone_status s = hn_cache_codes_of(n, "k_quant_type", past, &c->codes[0], error);
  if (!s) s = hn_cache_codes_of(n, "v_quant_type", past, &c->codes[1], error);
  if (s) return s;
  if (c->codes[0].bits != c->codes[1].bits) return hn_op_bad(n, error, "keys or values alone are codes");
  const hone_tensor_desc cache = past ? cache_of(past, &c->codes[0]) : (hone_tensor_desc){0};
  if ((s = hn_grouped_read(n, q, k, past ? &cache : NULL, &c->z, error))) return s;
  if (hone_node_int(n, "sliding_window_cache", 0) <= 0) return HONE_OK;
  c->window = hone_node_int(n, "local_window_size", -1);
  if (c->window < 1) return hn_op_bad(n, error, "sliding_window_cache without local_window_size");
  if (!past) return hn_op_bad(n, error, "sliding_window_cache without a cache");
  if (c->z.room >= 0 && c->z.room < c->window)
    return hn_op_bad(n, error, "local_window_size is %lld, and the cache has room for %lld",
                     (long long)c->window, (long long)c->z.room);
  return HONE_OK;
}

static hone_status check_dims(const hone_infer *io, const cached_heads *c, hone_error *error) {
  const hn_grouped *z = &c->z;
  const int64_t bits = c->codes[0].bits, all = z->size < 0 ? z->size : z->kv_heads * z->size,
                now[3] = {z->batch, z->queries, all},
                bytes = bits && z->size > 0 ? z->size * bits / 8 : z->size,
                past[4] = {z->batch, z->kv_heads, z->room, bytes};
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
  if (!s) s = hn_infer_vector(io, Q_NORM, z->size, error);
  if (!s) s = hn_infer_vector(io, K_NORM, z->size, error);
  if (!s) s = hn_infer_vector(io, QUERY_LENGTHS, z->batch, error);
  if (!s) s = hn_cache_codes_check(io, K_SCALE, &c->codes[0], all, error);
  return s ? s : hn_cache_codes_check(io, V_SCALE, &c->codes[1], all, error);
}

/* Floats of 16 bits, where Q has 32. */
static bool is_narrow(hone_dtype q, hone_dtype cache) {
  return q == HONE_DTYPE_F32 && (cache == HONE_DTYPE_F16 || cache == HONE_DTYPE_BF16);
}

static hone_status check_dtypes(const hone_infer *io, const cached_heads *c, hone_error *error) {
  const bool own = c->codes[0].bits ||
                   (hn_has_input(io, PAST_KEY) && is_narrow(io->input[Q]->dtype, io->input[PAST_KEY]->dtype));
  static const uint32_t same[] = {K, V, COS, SIN, SINK, Q_NORM, K_NORM, PAST_KEY, PAST_VALUE};
  static const uint32_t numbers[] = {LENGTHS, TOTAL, QUERY_LENGTHS};
  const size_t n = sizeof same / sizeof *same - (own ? 2 : 0);
  hone_status s = HONE_OK;
  for (size_t i = 0; i < n && !s; i++) s = hn_infer_same_dtype(io, Q, same[i], error);
  if (!s && own) s = hn_infer_same_dtype(io, PAST_KEY, PAST_VALUE, error);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !s; i++)
    s = hn_infer_dtype_in(io, numbers[i], HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s) s = hn_infer_vector(io, LENGTHS, HONE_DIM_UNKNOWN, error);
  return s ? s : hn_infer_dtype_in(io, POSITIONS, HONE_TYPES(HONE_DTYPE_I64), error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q], *k = hn_has_input(io, K) ? io->input[K] : NULL,
                         *past = hn_has_input(io, PAST_KEY) ? io->input[PAST_KEY] : NULL;
  cached_heads c;
  int64_t total;
  hone_status s = check_attrs(io, error);
  if (!s) s = read(io->node, q, k, past, &c, error);
  if (!s) s = check_dims(io, &c, error);
  if (!s) s = check_dtypes(io, &c, error);
  if (s) return s;
  if (hn_infer_ints(io, TOTAL, &total, 1) != 1) total = HONE_DIM_UNKNOWN;
  const hn_grouped *z = &c.z;
  const int64_t bits = c.codes[0].bits,
                keys = c.window                   ? z->room
                       : total < 0 || z->room < 0 ? HONE_DIM_UNKNOWN
                                                  : hn_max(z->room, total),
                all = z->size < 0 ? z->size : z->heads * z->size;
  const int64_t present[4] = {z->batch, z->kv_heads, keys,
                              bits && z->size > 0 ? z->size * bits / 8 : z->size};
  const hone_dtype type = bits || (past && is_narrow(q->dtype, past->dtype)) ? past->dtype : q->dtype;
  hn_infer_set(io, Y, q->dtype, 3, (const int64_t[]){z->batch, z->queries, all});
  hn_infer_set(io, PRESENT_KEY, type, 4, present);
  hn_infer_set(io, PRESENT_VALUE, type, 4, present);
  hn_infer_set(io, SCORES, q->dtype, 4, (const int64_t[]){z->batch, z->heads, z->queries, total});
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

/* One input of the batch. */
typedef struct one_input {
  int64_t tokens, old; /* new ones, and those before */
  int64_t kept;        /* of the old ones, those that the cache has */
  int64_t keeps;       /* of all, those that it has afterwards */
} one_input;

/* Of `tokens`, how many a window's cache has: what it drops it drops in strides, so that the moves are few.
 */
static int64_t resident(const cached_heads *c, int64_t tokens) {
  const int64_t room = c->z.room, stride = room - c->window + 1;
  if (!c->window || tokens <= room) return tokens;
  return tokens - (tokens - room + stride - 1) / stride * stride;
}

/* Nothing is old where the call is about all tokens that there are. */
static one_input input_of(const hone_call *call, const cached_heads *c, int64_t b) {
  const int64_t all = hn_get_i64(call->input[LENGTHS], b) + 1, queries = c->z.queries;
  one_input o = {.tokens = c->window ? hn_min(queries, all) : queries};
  if (hn_call_has(call, QUERY_LENGTHS)) {
    o.tokens = hn_get_i64(call->input[QUERY_LENGTHS], b);
    o.old = all - o.tokens;
  } else
    o.old = hn_get_i64(call->input[TOTAL], 0) == queries ? 0 : all - o.tokens;
  o.kept = resident(c, o.old), o.keeps = resident(c, o.old + o.tokens);
  return o;
}

/* Where the tokens stand: after those that are cached, or as the input says. */
static bool place(hone_call *call, const cached_heads *c, hone_tensor *positions, hone_error *error) {
  const hn_grouped *z = &c->z;
  const int64_t dim[2] = {z->batch, z->queries};
  const hone_tensor *p = given(call, POSITIONS);
  if (!hn_inner_tensor(call, HONE_DTYPE_I64, 2, dim, positions, error)) return false;
  for (int64_t i = 0; i < dim[0] * dim[1]; i++)
    ((int64_t *)positions->data)[i] =
        p ? hn_get_i64(p, hn_count(p) == 1 ? 0 : i) + (hn_count(p) == 1 ? i % dim[1] : 0)
          : hn_max(input_of(call, c, i / dim[1]).old, 0) + i % dim[1];
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

/* The first `n` tokens of x, [1, heads, tokens, size]. */
static bool first_tokens(hone_call *call, hone_tensor *x, int64_t n, hone_error *error) {
  const int64_t *d = x->desc.dim, dim[4] = {1, d[1], n, d[3]};
  const size_t row = (size_t)d[3] * hone_dtype_size(x->desc.dtype);
  hone_tensor made;
  if (n == d[2]) return true;
  if (!hn_inner_tensor(call, x->desc.dtype, 4, dim, &made, error)) return false;
  for (int64_t h = 0; h < d[1]; h++)
    memcpy((char *)made.data + (size_t)(h * n) * row, (const char *)x->data + (size_t)(h * d[2]) * row,
           (size_t)n * row);
  *x = made;
  return true;
}

/* attention_bias for the tokens that there are and the keys that are left. */
static hone_status bias_of(hone_call *call, const hone_tensor *bias, const one_input *o, hone_tensor *out,
                           hone_error *error) {
  const int64_t *d = bias->desc.dim, keys = o->kept + o->tokens, dim[4] = {1, d[1], o->tokens, keys};
  if (d[2] < o->tokens || d[3] < o->old + o->tokens)
    return hn_op_bad(call->node, error, "attention_bias is too small for %lld keys",
                     (long long)(o->old + o->tokens));
  if (!hn_inner_tensor(call, HONE_DTYPE_F32, 4, dim, out, error)) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < d[1] * o->tokens; i++)
    hn_load_f32((float *)out->data + i * keys, bias,
                (i / o->tokens * d[2] + i % o->tokens) * d[3] + o->old - o->kept, keys);
  return HONE_OK;
}

/* What is handed on of input b: `past` from the first kept token on, `now` (one input's) behind it. A cache
 * that drops nothing keeps what lies behind, too. */
static void hand_on(const hn_grouped *z, const hone_tensor *past, const hone_tensor *now, int64_t b,
                    const one_input *o, const hone_tensor *present) {
  const int64_t room = present->desc.dim[2], drop = o->kept + o->tokens - o->keeps,
                gone = hn_max(drop - o->kept, 0), kept = hn_max(o->kept - drop, 0);
  const size_t row = (size_t)present->desc.dim[3] * hone_dtype_size(present->desc.dtype),
               had = !past ? 0 : (size_t)(drop ? kept : hn_min(z->room, room)) * row;
  for (int64_t h = 0; h < z->kv_heads; h++) {
    const size_t one = (size_t)(b * z->kv_heads + h);
    char *to = (char *)present->data + one * (size_t)room * row;
    if (had)
      memcpy(to, (const char *)past->data + (one * (size_t)z->room + (size_t)(drop ? drop : 0)) * row, had);
    memset(to + had, 0, (size_t)room * row - had);
    memcpy(to + (size_t)kept * row, (const char *)now->data + (size_t)(h * o->tokens + gone) * row,
           (size_t)(o->tokens - gone) * row);
  }
}

/* x in another type. */
static bool in_type(hone_call *call, const hone_tensor *x, hone_dtype type, hone_tensor *out,
                    hone_error *error) {
  const int64_t n = hn_count(x);
  hone_tensor made;
  if (!hn_inner_tensor(call, type, x->desc.rank, x->desc.dim, &made, error)) return false;
  for (int64_t i = 0; i < n; i++) hn_set_f64(&made, i, hn_get_f64(x, i));
  *out = made;
  return true;
}

/* Keys or values of input b: what is cached of them, and the new ones as they are seen; hands them on. */
static bool take(hone_call *call, const cached_heads *c, int i, int64_t b, const one_input *o, int64_t zeros,
                 const hone_tensor *present, hone_tensor *was, hone_tensor *is, hone_error *error) {
  const hone_tensor *past = given(call, PAST_KEY + (uint32_t)i);
  const hone_dtype type = is->desc.dtype;
  hn_cache_codes codes = c->codes[i];
  hn_grouped z = c->z;
  hone_tensor coded;
  if (!first_tokens(call, is, o->tokens, error)) return false;
  if (!codes.bits && past && past->desc.dtype != type) { /* rounded, as they will lie in the cache */
    if (!in_type(call, is, past->desc.dtype, &coded, error)) return false;
    if (present) hand_on(&z, past, &coded, b, o, present);
    return in_type(call, &coded, type, is, error) &&
           hn_grouped_cached(call, &z, past, past->desc.dtype, b, zeros, o->kept, &coded, error) &&
           in_type(call, &coded, type, was, error);
  }
  if (!codes.bits) {
    if (present) hand_on(&z, past, is, b, o, present);
    return hn_grouped_cached(call, &z, past, type, b, zeros, o->kept, was, error);
  }
  codes.scale = call->input[K_SCALE + (uint32_t)i];
  if (!hn_cache_encode(call, &codes, is, &coded, error)) return false;
  if (present) hand_on(&z, past, &coded, b, o, present);
  if (!hn_cache_decode(call, &codes, &coded, 0, type, is, error)) return false;
  z.size = z.size * codes.bits / 8;
  return hn_grouped_cached(call, &z, past, past->desc.dtype, b, zeros, o->kept, &coded, error) &&
         hn_cache_decode(call, &codes, &coded, zeros, type, was, error);
}

/* The scores of input b among those of all keys; what a query does not see is 0. `zeros`: keys of sinks. */
static void show(hone_call *call, const cached_heads *c, int64_t b, const one_input *o, int64_t zeros,
                 const hone_tensor *seen) {
  hone_tensor *out = call->output[SCORES];
  const hn_grouped *z = &c->z;
  const int64_t total = out->desc.dim[3], keys = o->kept + o->tokens, gone = o->old - o->kept,
                local = hone_node_int(call->node, "local_window_size", -1);
  const bool causal = hone_node_int(call->node, "causal", 1) != 0;
  for (int64_t h = 0; h < z->heads; h++)
    for (int64_t q = 0; q < o->tokens; q++)
      for (int64_t k = 0; k < keys && gone + k < total; k++) {
        const bool sees = (!causal || k <= o->kept + q) && (local <= 0 || k > o->kept + q - local);
        if (sees)
          hn_set_f64(out, ((b * z->heads + h) * z->queries + q) * total + gone + k,
                     hn_get_f64(seen, (h * o->tokens + q) * (zeros + keys) + zeros + k));
      }
}

static hone_status attend(hone_call *call, const cached_heads *c, const hone_tensor part[3],
                          hone_tensor *const present[2], int64_t b, hone_error *error) {
  const hone_tensor *bias = given(call, ADDED), *added;
  const bool sinks = given(call, SINK) || hone_node_int(call->node, "smooth_softmax", 0) > 0;
  const one_input o = input_of(call, c, b);
  const int64_t window = hone_node_int(call->node, "local_window_size", -1),
                total = hn_max(c->z.room, hn_get_i64(call->input[TOTAL], 0));
  hone_status s = HONE_OK;
  hn_grouped z = c->z;
  hone_tensor room, beside, q = hn_grouped_entry(&part[0], b), y = hn_grouped_entry(call->output[Y], b),
                            one = {0}, was[2], is[2];
  if (o.tokens < 0 || o.tokens > z.queries || o.old < 0 ||
      (!c->window && (o.old > z.room || o.old + o.tokens > total)))
    return hn_op_bad(call->node, error,
                     "seqlens_k of input %lld is %lld, with %lld tokens and a cache of %lld", (long long)b,
                     (long long)(o.old + o.tokens - 1), (long long)o.tokens, (long long)z.room);
  for (int i = 0; i < 2; i++) {
    is[i] = hn_grouped_entry(&part[1 + i], b);
    if (!take(call, c, i, b, &o, sinks, present[i], &was[i], &is[i], error)) return HONE_ERROR_MEMORY;
  }
  if (o.tokens < z.queries) {
    memset(y.data, 0, (size_t)hone_desc_bytes(&y.desc));
    y.desc = hone_desc(y.desc.dtype, 3, (const int64_t[]){1, o.tokens, y.desc.dim[2]});
    z.queries = o.tokens;
    if (!o.tokens) return HONE_OK;
    if (!first_tokens(call, &q, o.tokens, error)) return HONE_ERROR_MEMORY;
  }
  if (bias) {
    const hone_tensor whole = hn_grouped_entry(bias, bias->desc.dim[0] == 1 ? 0 : b);
    one = whole;
    if (c->window || given(call, QUERY_LENGTHS)) s = bias_of(call, &whole, &o, &one, error);
    if (s) return s;
  }
  const hn_key_mask mask = {
      .bias = bias ? &one : NULL, .batch = 1, .queries = z.queries, .keys = o.kept + z.queries};
  if ((s = hn_key_mask_sum(call, &mask, &room, &added, error))) return s;
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
  hone_tensor seen;
  if (hone_node_int(call->node, "qk_output", SCORES_NONE) != SCORES_NONE) {
    const int64_t dim[4] = {1, z.heads, o.tokens, sinks + o.kept + o.tokens};
    if (!hn_inner_tensor(call, q.desc.dtype, 4, dim, &seen, error)) return HONE_ERROR_MEMORY;
    a.seen = &seen, a.weights = hone_node_int(call->node, "qk_output", 0) == SCORES_LATE;
  }
  if (sinks) s = sink(call, &z, o.kept, &a, &beside, error);
  if (!s) s = hn_attend_run(call, &a, error);
  if (!s && a.seen) show(call, c, b, &o, sinks, &seen);
  return s;
}

/* Each head over the root of its mean square, times the weights: in place, as `x` is this call's own. */
static void normalise(const hone_call *call, uint32_t weight, const char *name, hone_tensor *x) {
  const float usual = hone_node_float(call->node, "qk_norm_epsilon", 1e-6f);
  const double epsilon = (double)hone_node_float(call->node, name, usual);
  const int64_t size = x->desc.dim[3], n = hn_count(x);
  for (int64_t i = 0; i < n; i += size) {
    double sum = 0;
    for (int64_t k = 0; k < size; k++) sum += hn_get_f64(x, i + k) * hn_get_f64(x, i + k);
    const double by = 1 / sqrt(sum / (double)size + epsilon);
    for (int64_t k = 0; k < size; k++)
      hn_set_f64(x, i + k, hn_get_f64(x, i + k) * by * hn_get_f64(call->input[weight], k));
  }
}

static hone_status make_room(hone_call *call, const cached_heads *c, hone_tensor *present[2],
                             hone_error *error) {
  const hn_grouped *z = &c->z;
  const int64_t bits = c->codes[0].bits,
                room = c->window ? z->room : hn_max(z->room, hn_get_i64(call->input[TOTAL], 0)),
                dim[4] = {z->batch, z->kv_heads, room, bits ? z->size * bits / 8 : z->size};
  hone_status s = HONE_OK;
  for (uint32_t i = 0; i < 2 && !s; i++) {
    const uint32_t at = PRESENT_KEY + i;
    const hone_tensor_desc d =
        hone_desc(bits ? call->input[PAST_KEY]->desc.dtype : call->input[Q]->desc.dtype, 4, dim);
    present[i] = at < call->n_outputs ? call->output[at] : NULL;
    if (present[i] && !present[i]->data) s = call->alloc_output(call, at, &d, error);
  }
  if (s || call->n_outputs <= SCORES || !call->output[SCORES]) return s;
  hone_tensor *scores = call->output[SCORES];
  const int64_t all[4] = {z->batch, z->heads, z->queries, hn_get_i64(call->input[TOTAL], 0)};
  const hone_tensor_desc d = hone_desc(call->input[Q]->desc.dtype, 4, all);
  if (all[3] < 0) return hn_op_bad(call->node, error, "total_sequence_length is %lld", (long long)all[3]);
  if (!scores->data) s = call->alloc_output(call, SCORES, &d, error);
  if (!s && hn_count(scores) > 0) memset(scores->data, 0, (size_t)hone_desc_bytes(&scores->desc));
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *q = call->input[Q], *k = given(call, K), *past = given(call, PAST_KEY);
  hone_tensor part[3], *present[2];
  cached_heads c;
  hone_status s = read(call->node, &q->desc, k ? &k->desc : NULL, past ? &past->desc : NULL, &c, error);
  if (s) return s;
  if (hn_count(call->input[LENGTHS]) != c.z.batch)
    return hn_op_bad(call->node, error, "seqlens_k is not a number for each of %lld inputs",
                     (long long)c.z.batch);
  if (!(s = make_room(call, &c, present, error))) s = hn_grouped_split(call, &c.z, part, error);
  if (!s && given(call, Q_NORM)) {
    normalise(call, Q_NORM, "q_norm_epsilon", &part[0]);
    normalise(call, K_NORM, "k_norm_epsilon", &part[1]);
  }
  if (!s && hone_node_int(call->node, "do_rotary", 0)) {
    hone_tensor positions;
    if (!place(call, &c, &positions, error)) return HONE_ERROR_MEMORY;
    for (int i = 0; i < 2 && !s; i++)
      s = hn_grouped_turn(call, &c.z, call->input[COS], call->input[SIN], &positions, &part[i], error);
  }
  for (int64_t b = 0; b < c.z.batch && !s; b++) s = attend(call, &c, part, present, b, error);
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
                                HN_OUTPUTS(1, 4),
                                .types = HN_TYPES_FLOAT,
                                .attrs = attrs,
                                .infer = infer,
                                .cost = cost,
                                .reference = reference,
                                .host_inputs = 1u << TOTAL};
