#include "model/ops/microsoft/attention/decoding.h"

hone_status hn_decoding_before(hone_call *call, uint32_t input, int64_t room, int64_t otherwise, int64_t *out,
                               hone_error *error) {
  *out = hn_call_has(call, input) ? hn_get_i64(call->input[input], 0) : otherwise;
  return *out >= 0 && *out <= room
             ? HONE_OK
             : hn_op_bad(call->node, error, "past_sequence_length is %lld, in a cache of %lld",
                         (long long)*out, (long long)room);
}

hone_status hn_decoding_beams(hone_call *call, uint32_t width, uint32_t beams, int64_t batch, int64_t room,
                              hn_decoding *d, hone_error *error) {
  const int64_t n = hn_call_has(call, width) ? hn_get_i64(call->input[width], 0) : 1;
  d->width = n, d->beams = NULL;
  if (n < 1 || batch % n)
    return hn_op_bad(call->node, error, "beam_width is %lld, for %lld rows", (long long)n, (long long)batch);
  if (!hn_call_has(call, beams))
    return n == 1 ? HONE_OK : hn_op_bad(call->node, error, "beams have no cache_indirection");
  d->beams = call->input[beams];
  const hone_tensor_desc *t = &d->beams->desc;
  if (t->rank != 3 || t->dim[0] != batch / n || t->dim[1] != n || t->dim[2] < d->before || t->dim[2] < room)
    return hn_op_bad(call->node, error, "cache_indirection is not for %lld x %lld beams and %lld tokens",
                     (long long)(batch / n), (long long)n, (long long)room);
  return HONE_OK;
}

/* The first `before` tokens that a row of the batch sees: of its own cache, or of its beams'. */
static hone_status cached(hone_call *call, const hn_decoding *d, int which, hone_tensor *out,
                          hone_error *error) {
  const hone_tensor *past = &d->past[which];
  const int64_t *p = past->desc.dim, dim[4] = {p[0], p[1], d->before, p[3]};
  const size_t row = (size_t)p[3] * hone_dtype_size(past->desc.dtype);
  if (!hn_inner_tensor(call, past->desc.dtype, 4, dim, out, error)) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < p[0] * p[1]; i++) {
    const int64_t b = i / p[1], h = i % p[1];
    char *to = (char *)out->data + (size_t)(i * d->before) * row;
    if (!d->beams) {
      if (d->before && row)
        memcpy(to, (const char *)past->data + (size_t)(i * p[2]) * row, (size_t)d->before * row);
      continue;
    }
    for (int64_t t = 0; t < d->before; t++) {
      const int64_t beam = hn_get_i64(d->beams, b * d->beams->desc.dim[2] + t),
                    from = b / d->width * d->width + beam;
      if (beam < 0 || beam >= d->width)
        return hn_op_bad(call->node, error, "token %lld came from beam %lld of %lld", (long long)t,
                         (long long)beam, (long long)d->width);
      memcpy(to + (size_t)t * row, (const char *)past->data + (size_t)((from * p[1] + h) * p[2] + t) * row,
             row);
    }
  }
  return HONE_OK;
}

/* The cache with this step's token in it. */
static void hand_on(const hn_decoding *d, int which) {
  const hone_tensor *past = &d->past[which], *now = &d->now[1 + which];
  const int64_t *p = past->desc.dim, room = d->present[which].desc.dim[2];
  const size_t row = (size_t)p[3] * hone_dtype_size(past->desc.dtype);
  for (int64_t i = 0; i < p[0] * p[1] && row; i++) {
    char *to = (char *)d->present[which].data + (size_t)(i * room) * row;
    if (p[2]) memcpy(to, (const char *)past->data + (size_t)(i * p[2]) * row, (size_t)p[2] * row);
    memcpy(to + (size_t)d->before * row, (const char *)now->data + (size_t)i * row, row);
  }
}

hone_status hn_decoding_run(hone_call *call, const hn_decoding *d, hone_error *error) {
  const int64_t batch = d->now[0].desc.dim[0], keys = d->before + 1;
  hone_tensor was[2], room;
  const hone_tensor *added;
  for (int i = 0; i < 2; i++) {
    const int64_t there = d->present[i].desc.rank ? d->present[i].desc.dim[2] : keys;
    if (there < keys) return hn_op_bad(call->node, error, "a cache of %lld tokens is full", (long long)there);
    const hone_status s = cached(call, d, i, &was[i], error);
    if (s) return s;
    if (d->present[i].data) hand_on(d, i);
  }
  const hn_key_mask mask = {.keep = d->keep,
                            .bias = d->added,
                            .filter = hone_node_float(call->node, "mask_filter_value", -10000.0f),
                            .batch = batch,
                            .queries = 1,
                            .before = d->before,
                            .keys = keys};
  const hone_status s = hn_key_mask_sum(call, &mask, &room, &added, error);
  if (s) return s;
  const hn_attend a = {.q = &d->now[0],
                       .k = &d->now[1],
                       .v = &d->now[2],
                       .past_k = &was[0],
                       .past_v = &was[1],
                       .added = added,
                       .window = -1,
                       .scale = hone_node_float(call->node, "scale", 0),
                       .y = d->y,
                       .seen = d->scores};
  return hn_attend_run(call, &a, error);
}
