#include "model/ops/microsoft/attention/grouped.h"

extern const hone_op_desc hn_op_rotary_embedding;

hone_status hn_grouped_read(const hone_node *n, const hone_tensor_desc *q, const hone_tensor_desc *k,
                            const hone_tensor_desc *past, hn_grouped *s, hone_error *error) {
  const int64_t all = hn_dim(q, 2);
  *s = (hn_grouped){.batch = hn_dim(q, 0),
                    .heads = hone_node_int(n, "num_heads", 0),
                    .kv_heads = hone_node_int(n, "kv_num_heads", 0),
                    .queries = hn_dim(q, 1),
                    .size = HONE_DIM_UNKNOWN,
                    .room = past ? hn_dim(past, 2) : 0,
                    .packed = !k};
  if (s->heads < 1 || s->kv_heads < 1 || s->heads % s->kv_heads)
    return hn_op_bad(n, error, "num_heads is %lld, kv_num_heads %lld", (long long)s->heads,
                     (long long)s->kv_heads);
  if (q->rank >= 0 && q->rank != 3) return hn_op_bad(n, error, "the query has rank %d", (int)q->rank);
  if (all < 0) return HONE_OK;
  const int64_t each = s->packed ? s->heads + 2 * s->kv_heads : s->heads;
  if (all % each)
    return hn_op_bad(n, error, "%lld values a token are not %lld heads", (long long)all, (long long)each);
  s->size = all / each;
  if (k && hn_dims_differ(hn_dim(k, 2), s->kv_heads * s->size))
    return hn_op_bad(n, error, "the key has %lld values a token, expected %lld", (long long)hn_dim(k, 2),
                     (long long)(s->kv_heads * s->size));
  if (k && hn_dims_differ(hn_dim(k, 1), s->queries))
    return hn_op_refuse(n, error, "%lld keys for %lld queries", (long long)hn_dim(k, 1),
                        (long long)s->queries);
  if (past && (hn_dims_differ(hn_dim(past, 1), s->kv_heads) || hn_dims_differ(hn_dim(past, 3), s->size)))
    return hn_op_bad(n, error, "the past is not %lld heads of %lld values", (long long)s->kv_heads,
                     (long long)s->size);
  return HONE_OK;
}

hone_status hn_grouped_split(hone_call *call, const hn_grouped *z, hone_tensor part[3], hone_error *error) {
  const hone_tensor *q = call->input[0];
  const int64_t row = q->desc.dim[2];
  for (int i = 0; i < 3; i++) {
    const int64_t heads = i ? z->kv_heads : z->heads, dim[4] = {z->batch, heads, z->queries, z->size};
    const int64_t at = i == 0 ? 0 : (z->heads + (i - 1) * z->kv_heads) * z->size;
    const hn_tokens from = z->packed
                               ? hn_tokens_packed(q, z->queries, row, at, z->size)
                               : hn_tokens_packed(call->input[i], z->queries, heads * z->size, 0, z->size);
    if (!hn_tokens_gather(call, &from, NULL, 0, dim, &part[i], error)) return HONE_ERROR_MEMORY;
  }
  return HONE_OK;
}

hone_status hn_grouped_turn(hone_call *call, const hn_grouped *z, const hone_tensor *cos,
                            const hone_tensor *sin, const hone_tensor *positions, hone_tensor *x,
                            hone_error *error) {
  hone_tensor made;
  hn_inner n;
  hn_inner_begin(&n, call->node, &hn_op_rotary_embedding, 23);
  hn_inner_int(&n, "interleaved", hone_node_int(call->node, "rotary_interleaved", 0));
  const int64_t turned = 2 * cos->desc.dim[1];
  if (turned != z->size) hn_inner_int(&n, "rotary_embedding_dim", turned);
  if (!hn_inner_tensor(call, x->desc.dtype, 4, x->desc.dim, &made, error)) return HONE_ERROR_MEMORY;
  const hone_tensor *const in[4] = {x, cos, sin, positions};
  hone_tensor *out = &made;
  const hone_status s = hn_inner_run(call, &n, in, 4, &out, 1, error);
  *x = made;
  return s;
}

hone_tensor hn_grouped_entry(const hone_tensor *t, int64_t b) {
  int64_t dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < t->desc.rank; i++) dim[i] = i ? t->desc.dim[i] : 1;
  hone_tensor one = {.desc = hone_desc(t->desc.dtype, t->desc.rank, dim)};
  one.data = (char *)t->data + (size_t)(b * hone_desc_bytes(&one.desc));
  return one;
}

bool hn_grouped_cached(hone_call *call, const hn_grouped *z, const hone_tensor *past, hone_dtype type,
                       int64_t b, int64_t zeros, int64_t old, hone_tensor *out, hone_error *error) {
  const int64_t dim[4] = {1, z->kv_heads, zeros + old, z->size};
  const size_t row = (size_t)z->size * hone_dtype_size(type), part = (size_t)old * row;
  if (!hn_inner_tensor(call, type, 4, dim, out, error)) return false;
  for (int64_t h = 0; h < z->kv_heads && zeros + old; h++) {
    char *to = (char *)out->data + (size_t)h * ((size_t)zeros * row + part);
    memset(to, 0, (size_t)zeros * row);
    if (old)
      memcpy(to + (size_t)zeros * row,
             (const char *)past->data + (size_t)((b * z->kv_heads + h) * z->room) * row, part);
  }
  return true;
}

void hn_grouped_hand_on(const hn_grouped *z, const hone_tensor *past, const hone_tensor *now, int64_t b,
                        int64_t old, const hone_tensor *present) {
  const int64_t room = present->desc.dim[2];
  const size_t row = (size_t)z->size * hone_dtype_size(now->desc.dtype);
  for (int64_t h = 0; h < z->kv_heads; h++) {
    const size_t one = (size_t)(b * z->kv_heads + h);
    char *to = (char *)present->data + one * (size_t)room * row;
    const size_t had = past ? (size_t)hn_min(z->room, room) * row : 0;
    if (had) memcpy(to, (const char *)past->data + one * (size_t)z->room * row, had);
    memset(to + had, 0, (size_t)room * row - had);
    memcpy(to + (size_t)old * row, (const char *)now->data + one * (size_t)z->queries * row,
           (size_t)hn_min(z->queries, room - old) * row);
  }
}
