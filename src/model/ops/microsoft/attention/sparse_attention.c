/* SparseAttention: grouped attention with a cache, in which a block of queries sees some blocks of keys
 * alone: those that a list of rows and columns (CSR) names, one list for every head or several in turn. A
 * token sees none behind itself. */
#include "model/ops/microsoft/attention/grouped.h"

#include <math.h>

enum { Q, K, V, PAST_KEY, PAST_VALUE, ROWS, COLUMNS, TOTAL, LENGTHS, COS, SIN };
enum { Y, PRESENT_KEY, PRESENT_VALUE };

static hone_status check_attrs(const hone_infer *io, hone_error *error) {
  const hone_node *n = io->node;
  if (hn_has_input(io, K) != hn_has_input(io, V))
    return hn_op_bad(n, error, "key and value must be given together");
  for (uint32_t i = PAST_KEY; i <= LENGTHS; i++)
    if (!hn_has_input(io, i)) return hn_op_bad(n, error, "input %u is left out", i);
  if (hone_node_int(n, "do_rotary", 0) && (!hn_has_input(io, COS) || !hn_has_input(io, SIN)))
    return hn_op_bad(n, error, "do_rotary without cos_cache and sin_cache");
  const int64_t block = hone_node_int(n, "sparse_block_size", 0);
  return block == 16 || block == 32 || block == 64 || block == 128
             ? HONE_OK
             : hn_op_bad(n, error, "sparse_block_size is %lld", (long long)block);
}

static hone_status check_dims(const hone_infer *io, const hn_grouped *z, hone_error *error) {
  const int64_t all = z->size < 0 ? z->size : z->kv_heads * z->size, now[3] = {z->batch, z->queries, all},
                past[4] = {z->batch, z->kv_heads, z->room, z->size};
  const hone_tensor_desc *cos = hn_has_input(io, COS) ? io->input[COS] : NULL, *rows = io->input[ROWS];
  const int64_t cache[2] = {hn_dim(cos, 0), hn_dim(cos, 1)}, lists[2] = {hn_dim(rows, 0), hn_dim(rows, 1)},
                columns[2] = {lists[0], HONE_DIM_UNKNOWN};
  hone_status s = hn_infer_dims(io, K, "the key", 3, now, error);
  if (!s) s = hn_infer_dims(io, V, "the value", 3, now, error);
  if (!s) s = hn_infer_dims(io, PAST_KEY, "past_key", 4, past, error);
  if (!s) s = hn_infer_dims(io, PAST_VALUE, "past_value", 4, past, error);
  if (!s) s = hn_infer_dims(io, ROWS, "block_row_indices", 2, lists, error);
  if (!s) s = hn_infer_dims(io, COLUMNS, "block_col_indices", 2, columns, error);
  if (!s) s = hn_infer_vector(io, LENGTHS, z->batch, error);
  if (!s) s = hn_infer_dims(io, COS, "cos_cache", 2, cache, error);
  if (!s) s = hn_infer_dims(io, SIN, "sin_cache", 2, cache, error);
  if (!s && lists[0] >= 0 && (lists[0] == 0 || z->heads % lists[0]))
    s = hn_op_bad(io->node, error, "%lld lists of blocks are not shared by %lld heads", (long long)lists[0],
                  (long long)z->heads);
  if (!s && cache[1] >= 0 && z->size >= 0 && 2 * cache[1] > z->size)
    s = hn_op_bad(io->node, error, "the caches turn %lld values of a head, which has %lld",
                  (long long)(2 * cache[1]), (long long)z->size);
  return s;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q], *k = hn_has_input(io, K) ? io->input[K] : NULL;
  hn_grouped z = {0};
  hone_status s = check_attrs(io, error);
  if (!s) s = hn_grouped_read(io->node, q, k, io->input[PAST_KEY], &z, error);
  if (!s) s = check_dims(io, &z, error);
  static const uint32_t same[] = {K, V, PAST_KEY, PAST_VALUE, COS, SIN};
  for (size_t i = 0; i < sizeof same / sizeof *same && !s; i++)
    s = hn_infer_same_dtype(io, Q, same[i], error);
  for (uint32_t i = ROWS; i <= LENGTHS && !s; i++)
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_I32), error);
  if (s) return s;
  const int64_t present[4] = {z.batch, z.kv_heads, z.room, z.size};
  hn_infer_set(io, Y, q->dtype, 3,
               (const int64_t[]){z.batch, z.queries, z.size < 0 ? z.size : z.heads * z.size});
  hn_infer_set(io, PRESENT_KEY, q->dtype, 4, present);
  hn_infer_set(io, PRESENT_VALUE, q->dtype, 4, present);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t keys = hn_dim(io->input[PAST_KEY], 2);
  hn_cost_macs(cost, keys > 0 ? 2 * (double)keys * hn_known_count(io->output[Y]) : 0);
}

/* Tokens of input b that are cached: none where the call is about all there are. */
static int64_t before(const hone_call *call, const hn_grouped *z, int64_t b) {
  if (hn_get_i64(call->input[TOTAL], 0) == z->queries) return 0;
  return hn_get_i64(call->input[LENGTHS], b) - z->queries;
}

/* What is added to the scores of input b: nothing to those of keys that a head may see. */
static hone_status hide(hone_call *call, const hn_grouped *z, int64_t old, hone_tensor *added,
                        hone_error *error) {
  const hone_tensor *rows = call->input[ROWS], *columns = call->input[COLUMNS];
  const int64_t keys = old + z->queries, dim[4] = {1, z->heads, z->queries, keys},
                block = hone_node_int(call->node, "sparse_block_size", 16), n_rows = rows->desc.dim[1],
                n_columns = columns->desc.dim[1];
  if (!hn_inner_tensor(call, HONE_DTYPE_F32, 4, dim, added, error)) return HONE_ERROR_MEMORY;
  float *to = added->data;
  for (int64_t h = 0; h < z->heads; h++)
    for (int64_t q = 0; q < z->queries; q++, to += keys) {
      const int64_t list = h % rows->desc.dim[0], at = (old + q) / block;
      for (int64_t k = 0; k < keys; k++) to[k] = -INFINITY;
      const int64_t from = at + 1 < n_rows ? hn_get_i64(rows, list * n_rows + at) : -1,
                    end = at + 1 < n_rows ? hn_get_i64(rows, list * n_rows + at + 1) : -1;
      if (from < 0 || end < from || end > n_columns)
        return hn_op_bad(call->node, error, "block_row_indices do not name the blocks of token %lld",
                         (long long)(old + q));
      for (int64_t c = from; c < end; c++) {
        const int64_t first = hn_get_i64(columns, list * n_columns + c);
        if (first < 0 || first > at) continue;
        for (int64_t k = first * block; k < (first + 1) * block && k <= old + q; k++) to[k] = 0;
      }
    }
  return HONE_OK;
}

static hone_status attend(hone_call *call, const hn_grouped *z, const hone_tensor part[3],
                          hone_tensor *const present[2], int64_t b, hone_error *error) {
  const int64_t old = before(call, z, b);
  hone_tensor added, q = hn_grouped_entry(&part[0], b), y = hn_grouped_entry(call->output[Y], b), was[2],
                     is[2];
  if (old < 0 || old + z->queries > z->room)
    return hn_op_bad(call->node, error, "input %lld has %lld tokens and %lld before them, the cache %lld",
                     (long long)b, (long long)z->queries, (long long)old, (long long)z->room);
  for (int i = 0; i < 2; i++) {
    const hone_tensor *past = call->input[PAST_KEY + i];
    is[i] = hn_grouped_entry(&part[1 + i], b);
    if (present[i]) hn_grouped_hand_on(z, past, &part[1 + i], b, old, present[i]);
    if (!hn_grouped_cached(call, z, past, q.desc.dtype, b, 0, old, &was[i], error)) return HONE_ERROR_MEMORY;
  }
  const hone_status s = hide(call, z, old, &added, error);
  if (s) return s;
  const hn_attend a = {.q = &q,
                       .k = &is[0],
                       .v = &is[1],
                       .past_k = &was[0],
                       .past_v = &was[1],
                       .added = &added,
                       .window = -1,
                       .scale = hone_node_float(call->node, "scale", 0),
                       .y = &y};
  return hn_attend_run(call, &a, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *q = call->input[Q], *k = hn_call_has(call, K) ? call->input[K] : NULL;
  hone_tensor part[3], *present[2], positions;
  hn_grouped z;
  hone_status s =
      hn_grouped_read(call->node, &q->desc, k ? &k->desc : NULL, &call->input[PAST_KEY]->desc, &z, error);
  if (s) return s;
  if (hn_count(call->input[TOTAL]) != 1)
    return hn_op_bad(call->node, error, "total_sequence_length is not one number");
  for (int i = 0; i < 2; i++) {
    const uint32_t at = PRESENT_KEY + (uint32_t)i;
    present[i] = at < call->n_outputs ? call->output[at] : NULL;
  }
  s = hn_grouped_split(call, &z, part, error);
  if (!s && hone_node_int(call->node, "do_rotary", 0)) {
    const int64_t dim[2] = {z.batch, z.queries};
    if (!hn_inner_tensor(call, HONE_DTYPE_I64, 2, dim, &positions, error)) return HONE_ERROR_MEMORY;
    for (int64_t i = 0; i < dim[0] * dim[1]; i++)
      ((int64_t *)positions.data)[i] = hn_max(before(call, &z, i / dim[1]), 0) + i % dim[1];
    for (int i = 0; i < 2 && !s; i++)
      s = hn_grouped_turn(call, &z, call->input[COS], call->input[SIN], &positions, &part[i], error);
  }
  for (int64_t b = 0; b < z.batch && !s; b++) s = attend(call, &z, part, present, b, error);
  return s;
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "kv_num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "sparse_block_size", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "do_rotary", .type = HONE_ATTR_INT},
                                       {.name = "rotary_interleaved", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(sparse_attention) = {HONE_DESC_HEAD(hone_op_desc),
                           .domain = "com.microsoft",
                           .op_type = "SparseAttention",
                           .since = 1,
                           HN_INPUTS(1, 11),
                           HN_OUTPUTS(1, 3),
                           .types = HN_TYPES_FLOAT,
                           .attrs = attrs,
                           .infer = infer,
                           .cost = cost,
                           .reference = reference,
                           .host_inputs = 1u << TOTAL};
