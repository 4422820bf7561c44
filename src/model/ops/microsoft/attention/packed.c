#include "model/ops/microsoft/attention/packed.h"

hone_status hn_packed_check(const hone_infer *io, uint32_t offsets, hone_error *error) {
  const hone_tensor_desc *d = io->input[offsets];
  const uint32_t ends = offsets + 1, added = offsets + 2;
  const int64_t inputs = hn_dim(d, 0), longest = hn_dim(d, 1);
  hone_status s = HONE_OK;
  for (uint32_t i = offsets; i <= ends && !s; i++)
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s && d->rank >= 0 && d->rank != 2)
    s = hn_op_bad(io->node, error, "token_offset has rank %d", (int)d->rank);
  if (!s) s = hn_infer_vector(io, ends, inputs < 0 ? inputs : inputs + 1, error);
  if (!s) s = hn_infer_dtype_in(io, added, HN_TYPES_FLOAT, error);
  if (s || !hn_has_input(io, added)) return s;
  const hone_tensor_desc *b = io->input[added];
  const int64_t want[4] = {hn_dim(b, 0) == 1 ? 1 : inputs, hn_dim(b, 1), longest, longest};
  return hn_infer_dims(io, added, "attention_bias", 4, want, error);
}

/* What is added to the scores of input b, which has n tokens. */
static bool added_to(hone_call *call, const hn_packed *p, int64_t b, int64_t n, hone_tensor *out,
                     hone_error *error) {
  const int64_t *d = p->added->desc.dim, first = d[0] == 1 ? 0 : b;
  const int64_t dim[4] = {1, d[1], n, n};
  if (!hn_inner_tensor(call, HONE_DTYPE_F32, 4, dim, out, error)) return false;
  for (int64_t r = 0; r < d[1] * n; r++)
    hn_load_f32((float *)out->data + r * n, p->added, ((first * d[1] + r / n) * d[2] + r % n) * d[3], n);
  return true;
}

hone_status hn_packed_run(hone_call *call, const hn_packed *p, hone_tensor *y, hone_error *error) {
  const int64_t inputs = p->offsets->desc.dim[0], longest = p->offsets->desc.dim[1];
  const int64_t bias_at[3] = {0, p->heads * p->size, 2 * p->heads * p->size};
  int64_t at = hn_get_i64(p->ends, 0);
  if (at != 0)
    return hn_op_bad(call->node, error, "cumulative_sequence_length begins with %lld", (long long)at);
  for (int64_t b = 0; b < inputs; b++) {
    const int64_t end = hn_get_i64(p->ends, b + 1), n = end - at;
    if (n < 0 || end > p->tokens || n > longest || (b == inputs - 1 && end != p->tokens))
      return hn_op_bad(call->node, error, "tokens %lld to %lld of %lld are input %lld's", (long long)at,
                       (long long)end, (long long)p->tokens, (long long)b);
    if (n == 0) continue;
    hone_tensor part[3], room;
    for (int i = 0; i < 3; i++) {
      const int64_t dim[4] = {1, p->heads, n, i == 2 ? p->wide : p->size};
      hn_tokens from = p->part[i];
      from.at += at * from.token;
      if (!hn_tokens_gather(call, &from, p->bias, bias_at[i], dim, &part[i], error)) return HONE_ERROR_MEMORY;
    }
    if (p->added && !added_to(call, p, b, n, &room, error)) return HONE_ERROR_MEMORY;
    const int64_t dim[3] = {1, n, p->heads * p->wide};
    hone_tensor rows = {hone_desc(y->desc.dtype, 3, dim),
                        (char *)y->data + (size_t)(at * dim[2]) * hone_dtype_size(y->desc.dtype)};
    const hn_attend a = {.q = &part[0],
                         .k = &part[1],
                         .v = &part[2],
                         .added = p->added ? &room : NULL,
                         .window = -1,
                         .scale = hone_node_float(call->node, "scale", 0),
                         .y = &rows};
    const hone_status s = hn_attend_run(call, &a, error);
    if (s) return s;
    at = end;
  }
  return HONE_OK;
}
