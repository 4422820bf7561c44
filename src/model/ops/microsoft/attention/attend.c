#include "model/ops/microsoft/attention/attend.h"

extern const hone_op_desc hn_op_attention;

hn_tokens hn_tokens_packed(const hone_tensor *t, int64_t tokens, int64_t row, int64_t at, int64_t size) {
  return (hn_tokens){.from = t, .at = at, .batch = tokens * row, .token = row, .head = size};
}

hn_tokens hn_tokens_apart(const hone_tensor *t) {
  const int64_t *d = t->desc.dim;
  return (hn_tokens){.from = t, .batch = d[1] * d[2] * d[3], .token = d[3], .head = d[2] * d[3]};
}

bool hn_tokens_gather(hone_call *call, const hn_tokens *from, const hone_tensor *bias, int64_t bias_at,
                      const int64_t dim[4], hone_tensor *out, hone_error *error) {
  const int64_t heads = dim[1], tokens = dim[2], size = dim[3];
  double *row = hn_scratch(call, 2 * size, sizeof *row, error);
  if (!row || !hn_inner_tensor(call, from->from->desc.dtype, 4, dim, out, error)) return false;
  for (int64_t i = 0, n = dim[0] * heads * tokens; i < n; i++) {
    const int64_t b = i / (heads * tokens), h = i / tokens % heads, t = i % tokens;
    hn_load_f64(row, from->from, from->at + b * from->batch + t * from->token + h * from->head, size);
    if (bias) hn_load_f64(row + size, bias, bias_at + h * size, size);
    for (int64_t k = 0; k < size && bias; k++) row[k] += row[size + k];
    hn_store_f64(out, i * size, row, size);
  }
  return true;
}

static hone_status bring_together(hone_call *call, const hone_tensor *apart, hone_tensor *y,
                                  hone_error *error) {
  const int64_t *d = apart->desc.dim;
  double *row = hn_scratch(call, d[3], sizeof *row, error);
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t i = 0, n = d[0] * d[1] * d[2]; i < n; i++) {
    const int64_t b = i / (d[1] * d[2]), h = i / d[2] % d[1], t = i % d[2];
    hn_load_f64(row, apart, i * d[3], d[3]);
    hn_store_f64(y, ((b * d[2] + t) * d[1] + h) * d[3], row, d[3]);
  }
  return HONE_OK;
}

hone_status hn_attend_run(hone_call *call, const hn_attend *a, hone_error *error) {
  const int64_t *q = a->q->desc.dim;
  const int64_t dim[4] = {q[0], q[1], q[2], a->v->desc.dim[3]};
  hone_tensor apart;
  hn_inner n;
  hn_inner_begin(&n, call->node, &hn_op_attention, 25);
  hn_inner_int(&n, "is_causal", a->causal);
  hn_inner_float(&n, "softcap", a->cap);
  if (a->scale != 0) hn_inner_float(&n, "scale", a->scale);
  if (a->window >= 0) hn_inner_int(&n, "left_window_size", a->window);
  if (a->seen) hn_inner_int(&n, "qk_matmul_output_mode", a->weights ? 3 : 2);
  if (!hn_inner_tensor(call, a->q->desc.dtype, 4, dim, &apart, error)) return HONE_ERROR_MEMORY;
  const hone_tensor *const in[6] = {a->q, a->k, a->v, a->added, a->past_k, a->past_v};
  hone_tensor *const out[4] = {&apart, a->present_k, a->present_v, a->seen};
  const hone_status s = hn_inner_run(call, &n, in, 6, out, 4, error);
  return s ? s : bring_together(call, &apart, a->y, error);
}

hone_status hn_key_mask_check(const hone_infer *io, uint32_t keep, uint32_t bias, int64_t batch,
                              hone_error *error) {
  const hone_tensor_desc *m = hn_has_input(io, keep) ? io->input[keep] : NULL,
                         *b = hn_has_input(io, bias) ? io->input[bias] : NULL;
  hone_status s = hn_infer_dtype_in(io, keep, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s) s = hn_infer_dtype_in(io, bias, HN_TYPES_FLOAT, error);
  if (s) return s;
  if (b && b->rank >= 0 && b->rank != 4)
    return hn_op_bad(io->node, error, "attention_bias has rank %d, expected 4", (int)b->rank);
  if (!m || m->rank < 0) return HONE_OK;
  if (m->rank < 1 || m->rank > 4) return hn_op_bad(io->node, error, "the mask has rank %d", (int)m->rank);
  if (batch < 0 || m->dim[0] < 0) return HONE_OK;
  if (m->rank == 1 && m->dim[0] == 3 * batch + 2 && m->dim[0] != batch && m->dim[0] != 2 * batch)
    return hn_op_refuse(io->node, error, "a mask of 3 x batch + 2 numbers, which is for one GPU kernel");
  if (m->rank == 1 ? m->dim[0] != batch && m->dim[0] != 2 * batch : m->dim[0] != batch && m->dim[0] != 1)
    return hn_op_bad(io->node, error, "the mask is for %lld inputs, of which there are %lld",
                     (long long)m->dim[0], (long long)batch);
  return HONE_OK;
}

/* Whether key k counts for query q. */
static bool counts(const hn_key_mask *m, int64_t b, int64_t q, int64_t k) {
  const int64_t *d = m->keep->desc.dim;
  const int32_t *v = m->keep->data, rank = m->keep->desc.rank;
  if (rank == 1) return k < v[b] && (d[0] != 2 * m->batch || k >= v[m->batch + b]);
  if (d[0] == 1) b = 0;
  return v[rank == 2   ? b * d[1] + k
           : rank == 3 ? (b * d[1] + q) * d[2] + k
                       : (b * d[2] + m->before + q) * d[3] + k] > 0;
}

static bool fits(const hn_key_mask *m) {
  const hone_tensor_desc *d = &m->keep->desc;
  return d->rank == 1 || (d->rank == 2 && d->dim[1] == m->keys) ||
         (d->rank == 3 && d->dim[1] == m->queries && d->dim[2] == m->keys) ||
         (d->rank == 4 && d->dim[1] == 1 && d->dim[2] >= m->before + m->queries && d->dim[3] >= m->keys);
}

hone_status hn_key_mask_sum(hone_call *call, const hn_key_mask *m, hone_tensor *room, const hone_tensor **out,
                            hone_error *error) {
  const hone_tensor_desc *bd = m->bias ? &m->bias->desc : NULL;
  const int64_t heads = bd ? bd->dim[1] : 1;
  char text[96];
  *out = NULL;
  if (!m->keep && !m->bias) return HONE_OK;
  if (m->keep && !fits(m))
    return hn_op_bad(call->node, error, "the mask, %s, does not fit %lld queries and %lld keys",
                     hone_desc_format(&m->keep->desc, text, sizeof text), (long long)m->queries,
                     (long long)m->keys);
  if (bd && ((bd->dim[0] != 1 && bd->dim[0] != m->batch) || bd->dim[2] != m->queries || bd->dim[3] < m->keys))
    return hn_op_bad(call->node, error, "attention_bias, %s, does not fit %lld queries and %lld keys",
                     hone_desc_format(bd, text, sizeof text), (long long)m->queries, (long long)m->keys);
  const int64_t dim[4] = {m->batch, heads, m->queries, m->keys};
  if (!hn_inner_tensor(call, HONE_DTYPE_F32, 4, dim, room, error)) return HONE_ERROR_MEMORY;
  float *to = room->data;
  for (int64_t i = 0, n = m->batch * heads * m->queries; i < n; i++, to += m->keys) {
    const int64_t b = i / (heads * m->queries), h = i / m->queries % heads, q = i % m->queries;
    if (bd)
      hn_load_f32(to, m->bias, (((bd->dim[0] == 1 ? 0 : b) * heads + h) * m->queries + q) * bd->dim[3],
                  m->keys);
    else
      memset(to, 0, (size_t)m->keys * sizeof *to);
    for (int64_t k = 0; k < m->keys && m->keep; k++)
      if (!counts(m, b, q, k)) to[k] += m->filter;
  }
  *out = room;
  return HONE_OK;
}
