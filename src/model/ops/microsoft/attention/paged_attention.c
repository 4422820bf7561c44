/* PagedAttention: attention of the tokens of several texts, one after the other in one tensor, over keys and
 * values that lie in pages of a cache which all texts share. A table says which pages are a text's, so that
 * texts of any length come and go in a batch without a token of padding, and without a copy of what they have
 * said before. New keys are written into their pages, then all are read. */
#include "model/ops/microsoft/attention/grouped.h"

enum {
  Q,
  K,
  V,
  KEYS,
  VALUES,
  STARTS,
  PAST,
  TABLE,
  COS,
  SIN,
  SLOTS,
  SINK,
  Q_NORM,
  K_NORM,
  K_SCALE,
  V_SCALE,
  BOUNDS
};
enum { Y, KEYS_OUT, VALUES_OUT };

typedef struct sizes {
  hn_grouped z; /* batch: texts; queries: tokens of all of them; room: tokens of the whole cache */
  int64_t pages, page, row;
} sizes;

enum { MOST = 1 << 24 }; /* heads, values of a head: so that their products are numbers */

static hone_status check_attrs(const hone_infer *io, hone_error *error) {
  const hone_node *n = io->node;
  static const char *const types[] = {"k_cache_dtype", "v_cache_dtype"}, *const codes[] = {"k_quant_type",
                                                                                           "v_quant_type"};
  for (uint32_t i = KEYS; i <= TABLE; i++)
    if (!hn_has_input(io, i)) {
      if (i == VALUES) return hn_op_refuse(n, error, "one cache for keys and values");
      return hn_op_bad(n, error, "input %u is left out", i);
    }
  if (hn_has_input(io, K) != hn_has_input(io, V))
    return hn_op_bad(n, error, "key and value must be given together");
  if (strcmp(hone_node_string(n, "kv_cache_layout", "SEPARATE"), "SEPARATE") != 0)
    return hn_op_refuse(n, error, "one cache for keys and values");
  for (int i = 0; i < 2; i++)
    if (*hone_node_string(n, types[i], "") || strcmp(hone_node_string(n, codes[i], "NONE"), "NONE") != 0)
      return hn_op_refuse(n, error, "a cache of codes");
  if (hone_node_int(n, "rotary_offset", 0)) return hn_op_refuse(n, error, "rotary_offset");
  for (uint32_t i = SINK; i <= V_SCALE; i++)
    if (hn_has_input(io, i)) return hn_op_refuse(n, error, "input %u", i);
  if (hone_node_int(n, "do_rotary", 0) && (!hn_has_input(io, COS) || !hn_has_input(io, SIN)))
    return hn_op_bad(n, error, "do_rotary without cos_cache and sin_cache");
  return HONE_OK;
}

static hone_status read(const hone_node *n, const hone_tensor_desc *q, bool packed,
                        const hone_tensor_desc *keys, const hone_tensor_desc *past, sizes *s,
                        hone_error *error) {
  const int64_t heads = hone_node_int(n, "num_heads", 0), kv_heads = hone_node_int(n, "kv_num_heads", 0);
  const bool good = kv_heads >= 1 && heads >= kv_heads && heads <= MOST && heads % kv_heads == 0;
  const int64_t row = hn_dim(q, 1), each = !good ? 1 : packed ? heads + 2 * kv_heads : heads;
  *s = (sizes){.z = {.batch = hn_dim(past, 0),
                     .heads = heads,
                     .kv_heads = kv_heads,
                     .queries = hn_dim(q, 0),
                     .size = hn_dim(keys, 3),
                     .packed = packed},
               .pages = hn_dim(keys, 0),
               .page = hn_dim(keys, 1),
               .row = row};
  if (!good)
    return hn_op_bad(n, error, "num_heads is %lld, kv_num_heads %lld", (long long)heads, (long long)kv_heads);
  if (q->rank >= 0 && q->rank != 2) return hn_op_bad(n, error, "the query has rank %d", (int)q->rank);
  if (row >= 0 && row % each)
    return hn_op_bad(n, error, "%lld values a token are not %lld heads", (long long)row, (long long)each);
  if (row >= 0) {
    if (hn_dims_differ(s->z.size, row / each))
      return hn_op_bad(n, error, "heads of the query have %lld values, those of the cache %lld",
                       (long long)(row / each), (long long)s->z.size);
    s->z.size = row / each;
  }
  if (s->z.size > MOST)
    return hn_op_bad(n, error, "heads of %lld values, at most %d", (long long)s->z.size, MOST);
  return HONE_OK;
}

static hone_status check_dims(const hone_infer *io, const sizes *s, hone_error *error) {
  const hn_grouped *z = &s->z;
  const hone_tensor_desc *cos = hn_has_input(io, COS) ? io->input[COS] : NULL;
  const int64_t now[2] = {z->queries, z->size < 0 ? z->size : z->kv_heads * z->size},
                cache[4] = {s->pages, s->page, z->kv_heads, z->size},
                turns[2] = {hn_dim(cos, 0), hn_dim(cos, 1)}, table[2] = {z->batch, HONE_DIM_UNKNOWN};
  hone_status e = hn_infer_dims(io, K, "the key", 2, now, error);
  if (!e) e = hn_infer_dims(io, V, "the value", 2, now, error);
  if (!e) e = hn_infer_dims(io, KEYS, "key_cache", 4, cache, error);
  if (!e) e = hn_infer_dims(io, VALUES, "value_cache", 4, cache, error);
  if (!e) e = hn_infer_dims(io, COS, "cos_cache", 2, turns, error);
  if (!e) e = hn_infer_dims(io, SIN, "sin_cache", 2, turns, error);
  if (!e && cos && turns[1] >= 0 && z->size >= 0 && turns[1] > z->size / 2)
    e = hn_op_bad(io->node, error, "the caches turn %lld pairs of a head, which has %lld values",
                  (long long)turns[1], (long long)z->size);
  if (!e) e = hn_infer_dims(io, TABLE, "block_table", 2, table, error);
  if (!e) e = hn_infer_vector(io, STARTS, z->batch < 0 ? z->batch : z->batch + 1, error);
  if (!e) e = hn_infer_vector(io, PAST, z->batch, error);
  return e ? e : hn_infer_vector(io, SLOTS, z->queries, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  static const uint32_t same[] = {K, V, KEYS, VALUES, COS, SIN},
                        whole[] = {STARTS, PAST, TABLE, SLOTS, BOUNDS};
  sizes s;
  hone_status e = check_attrs(io, error);
  if (!e) e = read(io->node, io->input[Q], !hn_has_input(io, K), io->input[KEYS], io->input[PAST], &s, error);
  if (!e) e = check_dims(io, &s, error);
  for (size_t i = 0; i < sizeof same / sizeof *same && !e; i++)
    e = hn_infer_same_dtype(io, Q, same[i], error);
  for (size_t i = 0; i < sizeof whole / sizeof *whole && !e; i++)
    e = hn_infer_dtype_in(io, whole[i], HONE_TYPES(HONE_DTYPE_I32), error);
  if (e) return e;
  const hn_grouped *z = &s.z;
  const hone_dtype type = io->input[Q]->dtype;
  const int64_t cache[4] = {s.pages, s.page, z->kv_heads, z->size};
  hn_infer_set(io, Y, type, 2, (const int64_t[]){z->queries, z->size < 0 ? z->size : z->heads * z->size});
  hn_infer_set(io, KEYS_OUT, type, 4, cache);
  hn_infer_set(io, VALUES_OUT, type, 4, cache);
  return HONE_OK;
}

/* A text may be as long as its row of the table has pages. */
static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t pages = hn_dim(io->input[TABLE], 1), page = hn_dim(io->input[KEYS], 1);
  hn_cost_macs(
      cost, pages > 0 && page > 0 ? 2.0 * (double)pages * (double)page * hn_known_count(io->output[Y]) : 0);
}

/* ------------------------------------------------------------------ the cache */

/* Where token `at` of text b lies, in tokens of the cache; < 0: its page is not mapped. */
static int64_t place(const hone_call *call, const sizes *s, int64_t b, int64_t at) {
  const hone_tensor *table = call->input[TABLE];
  if (at / s->page >= table->desc.dim[1]) return -1;
  const int64_t page = hn_get_i64(table, b * table->desc.dim[1] + at / s->page);
  return page < 0 || page >= s->pages ? -1 : page * s->page + at % s->page;
}

static char *token(const sizes *s, const hone_tensor *cache, int64_t at, int64_t head) {
  return (char *)cache->data +
         (size_t)((at * s->z.kv_heads + head) * s->z.size) * hone_dtype_size(cache->desc.dtype);
}

/* Tokens `from` to `from + n` of text b as [1, heads, n, size]. */
static hone_status take(hone_call *call, const sizes *s, const hone_tensor *cache, int64_t b, int64_t from,
                        int64_t n, hone_tensor *out, hone_error *error) {
  const int64_t dim[4] = {1, s->z.kv_heads, n, s->z.size};
  const size_t row = (size_t)s->z.size * hone_dtype_size(cache->desc.dtype);
  if (!hn_inner_tensor(call, cache->desc.dtype, 4, dim, out, error)) return HONE_ERROR_MEMORY;
  for (int64_t t = 0; t < n; t++) {
    const int64_t at = place(call, s, b, from + t);
    if (at < 0)
      return hn_op_bad(call->node, error, "token %lld of text %lld lies in no page of block_table",
                       (long long)(from + t), (long long)b);
    for (int64_t h = 0; h < s->z.kv_heads; h++)
      memcpy((char *)out->data + (size_t)(h * n + t) * row, token(s, cache, at, h), row);
  }
  return HONE_OK;
}

/* Writes the new tokens of text b, [1, heads, n, size], where the table or slot_mapping says. */
static hone_status put(hone_call *call, const sizes *s, const hone_tensor *now, int64_t b, int64_t start,
                       int64_t past, const hone_tensor *cache, hone_error *error) {
  const int64_t n = now->desc.dim[2], slots = s->pages * s->page;
  const size_t row = (size_t)s->z.size * hone_dtype_size(cache->desc.dtype);
  for (int64_t t = 0; t < n; t++) {
    const bool told = hn_call_has(call, SLOTS);
    const int64_t at = told ? hn_get_i64(call->input[SLOTS], start + t) : place(call, s, b, past + t);
    if (told && at == -1) continue; /* it is there already */
    if (at < 0 || at >= slots)
      return hn_op_bad(call->node, error, "token %lld of text %lld has no place among %lld of the cache",
                       (long long)(past + t), (long long)b, (long long)slots);
    for (int64_t h = 0; h < s->z.kv_heads; h++)
      memcpy(token(s, cache, at, h), (const char *)now->data + (size_t)(h * n + t) * row, row);
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ a text */

typedef struct text {
  int64_t start, n, past; /* of its new tokens among all, how many, and how many lie in the cache */
  hone_tensor q;
} text;

/* Q, K and V of its new tokens as [1, heads, n, size], turned by their positions. */
static hone_status split(hone_call *call, const sizes *s, const text *x, hone_tensor part[3],
                         hone_error *error) {
  hn_grouped z = s->z;
  hone_tensor positions;
  z.batch = 1, z.queries = x->n;
  for (int i = 0; i < 3; i++) {
    const int64_t heads = i ? z.kv_heads : z.heads, dim[4] = {1, heads, x->n, z.size};
    const int64_t row = z.packed ? s->row : heads * z.size,
                  at = !z.packed || i == 0 ? 0 : (z.heads + (i - 1) * z.kv_heads) * z.size;
    const hn_tokens from = {.from = call->input[z.packed ? Q : i],
                            .at = x->start * row + at,
                            .batch = 0,
                            .token = row,
                            .head = z.size};
    if (!hn_tokens_gather(call, &from, NULL, 0, dim, &part[i], error)) return HONE_ERROR_MEMORY;
  }
  if (!hone_node_int(call->node, "do_rotary", 0)) return HONE_OK;
  if (!hn_inner_tensor(call, HONE_DTYPE_I64, 2, (const int64_t[]){1, x->n}, &positions, error))
    return HONE_ERROR_MEMORY;
  for (int64_t t = 0; t < x->n; t++) ((int64_t *)positions.data)[t] = x->past + t;
  hone_status e = HONE_OK;
  for (int i = 0; i < 2 && !e; i++)
    e = hn_grouped_turn(call, &z, call->input[COS], call->input[SIN], &positions, &part[i], error);
  return e;
}

static hone_status attend(hone_call *call, const sizes *s, const text *x, int64_t b,
                          const hone_tensor cache[2], hone_error *error) {
  const int64_t window = hone_node_int(call->node, "local_window_size", -1), row = s->z.heads * s->z.size;
  hone_tensor was[2], is[2], y = *call->output[Y];
  hone_status e = HONE_OK;
  for (int i = 0; i < 2 && !e; i++) {
    e = take(call, s, &cache[i], b, 0, x->past, &was[i], error);
    if (!e) e = take(call, s, &cache[i], b, x->past, x->n, &is[i], error);
  }
  if (e) return e;
  y.data = (char *)y.data + (size_t)(x->start * row) * hone_dtype_size(y.desc.dtype);
  y.desc = hone_desc(y.desc.dtype, 3, (const int64_t[]){1, x->n, row});
  const hn_attend a = {.q = &x->q,
                       .k = &is[0],
                       .v = &is[1],
                       .past_k = &was[0],
                       .past_v = &was[1],
                       .causal = hone_node_int(call->node, "is_causal", 1) != 0,
                       .window = window > 0 ? window - 1 : -1,
                       .scale = hone_node_float(call->node, "scale", 0),
                       .cap = hone_node_float(call->node, "softcap", 0),
                       .y = &y};
  return hn_attend_run(call, &a, error);
}

static hone_status find_text(const hone_call *call, const sizes *s, int64_t b, text *x, hone_error *error) {
  const hone_tensor *starts = call->input[STARTS];
  const int64_t end = hn_get_i64(starts, b + 1), most = call->input[TABLE]->desc.dim[1] * s->page;
  *x = (text){.start = hn_get_i64(starts, b), .past = hn_get_i64(call->input[PAST], b)};
  x->n = end - x->start;
  if (x->start < 0 || x->n < 0 || end > s->z.queries)
    return hn_op_bad(call->node, error, "text %lld is tokens %lld to %lld of %lld", (long long)b,
                     (long long)x->start, (long long)end, (long long)s->z.queries);
  if (x->past < 0 || x->past > most - x->n)
    return hn_op_bad(call->node, error,
                     "text %lld has %lld tokens in the cache and %lld new ones, and pages for %lld",
                     (long long)b, (long long)x->past, (long long)x->n, (long long)most);
  return HONE_OK;
}

/* The caches as they are handed on: copies, until somebody lends the memory of the old ones. */
static hone_status open_cache(hone_call *call, uint32_t i, hone_tensor *out, hone_error *error) {
  const hone_tensor *from = call->input[KEYS + i];
  const bool wanted = KEYS_OUT + i < call->n_outputs && call->output[KEYS_OUT + i];
  if (!wanted && !hn_inner_tensor(call, from->desc.dtype, 4, from->desc.dim, out, error))
    return HONE_ERROR_MEMORY;
  if (wanted) *out = *call->output[KEYS_OUT + i];
  if (out->data != from->data) memcpy(out->data, from->data, (size_t)hone_desc_bytes(&from->desc));
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  sizes s;
  hone_tensor cache[2];
  hone_status e = read(call->node, &call->input[Q]->desc, !hn_call_has(call, K), &call->input[KEYS]->desc,
                       &call->input[PAST]->desc, &s, error);
  for (uint32_t i = 0; i < 2 && !e; i++) e = open_cache(call, i, &cache[i], error);
  if (e) return e;
  memset(call->output[Y]->data, 0, (size_t)hone_desc_bytes(&call->output[Y]->desc)); /* tokens of no text */
  text *list = hn_scratch(call, s.z.batch + 1, sizeof *list, error);
  if (!list) return HONE_ERROR_MEMORY;
  /* All that is new is there before anything is read: texts may share pages. */
  for (int64_t b = 0; b < s.z.batch && !e; b++) {
    hone_tensor part[3];
    e = find_text(call, &s, b, &list[b], error);
    if (e || !list[b].n) continue;
    e = split(call, &s, &list[b], part, error);
    list[b].q = part[0];
    for (int i = 0; i < 2 && !e; i++)
      e = put(call, &s, &part[1 + i], b, list[b].start, list[b].past, &cache[i], error);
  }
  for (int64_t b = 0; b < s.z.batch && !e; b++)
    if (list[b].n) e = attend(call, &s, &list[b], b, cache, error);
  return e;
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "kv_num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "softcap", .type = HONE_ATTR_FLOAT},
                                       {.name = "local_window_size", .type = HONE_ATTR_INT},
                                       {.name = "is_causal", .type = HONE_ATTR_INT},
                                       {.name = "do_rotary", .type = HONE_ATTR_INT},
                                       {.name = "rotary_interleaved", .type = HONE_ATTR_INT},
                                       {.name = "rotary_offset", .type = HONE_ATTR_INT},
                                       {.name = "qk_norm_epsilon", .type = HONE_ATTR_FLOAT},
                                       {.name = "kv_cache_layout", .type = HONE_ATTR_STRING},
                                       {.name = "v_head_size", .type = HONE_ATTR_INT},
                                       {.name = "k_cache_dtype", .type = HONE_ATTR_STRING},
                                       {.name = "v_cache_dtype", .type = HONE_ATTR_STRING},
                                       {.name = "k_quant_type", .type = HONE_ATTR_STRING},
                                       {.name = "v_quant_type", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(paged_attention) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "PagedAttention",
                          .since = 1,
                          HN_INPUTS(1, 17),
                          HN_OUTPUTS(1, 3),
                          .types = HN_TYPES_FLOAT,
                          .attrs = attrs,
                          .infer = infer,
                          .cost = cost,
                          .reference = reference};
