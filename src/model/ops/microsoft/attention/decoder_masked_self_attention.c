/* DecoderMaskedSelfAttention: Attention of com.microsoft for one token, behind a cache. past and present: [2,
 * batch, heads, tokens, size], keys first; where past_present_share_buffer is set both have room for more
 * tokens, and past_sequence_length says how many there are. */
#include "model/ops/microsoft/attention/decoding.h"

enum { X, W, BIAS, MASK, PAST, ADDED, BEFORE, WIDTH, BEAMS };
enum { Y, PRESENT };
extern const hone_op_desc hn_op_matmul;

typedef struct sizes {
  int64_t batch, heads, size, room; /* room: tokens of the cache */
  bool shared;
} sizes;

static hone_status read(const hone_node *n, const hone_tensor_desc *x, const hone_tensor_desc *w,
                        const hone_tensor_desc *past, sizes *z, hone_error *error) {
  const int64_t columns = hn_dim(w, 1);
  *z = (sizes){hn_dim(x, 0), hone_node_int(n, "num_heads", 0), HONE_DIM_UNKNOWN, hn_dim(past, 3),
               hone_node_int(n, "past_present_share_buffer", 0) != 0};
  if (z->heads < 1) return hn_op_bad(n, error, "num_heads is %lld", (long long)z->heads);
  if (hone_node_int(n, "do_rotary", 0)) return hn_op_refuse(n, error, "do_rotary");
  if (columns >= 0 && (columns % 3 || columns / 3 % z->heads))
    return hn_op_bad(n, error, "%lld columns of weights are not Q, K and V of %lld heads", (long long)columns,
                     (long long)z->heads);
  if (columns >= 0) z->size = columns / 3 / z->heads;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *w = io->input[W], *past = NULL;
  sizes z;
  if (!hn_has_input(io, PAST)) return hn_op_bad(io->node, error, "there is no past");
  past = io->input[PAST];
  hone_status s = read(io->node, x, w, past, &z, error);
  if (!s && z.shared && !hn_has_input(io, BEFORE))
    s = hn_op_bad(io->node, error, "there is no past_sequence_length");
  const int64_t hidden = z.size < 0 ? z.size : z.size * z.heads;
  if (!s) s = hn_infer_dims(io, X, "the input", 3, (const int64_t[]){z.batch, 1, hn_dim(w, 0)}, error);
  if (!s) s = hn_infer_dims(io, W, "the weights", 2, (const int64_t[]){hn_dim(x, 2), hn_dim(w, 1)}, error);
  if (!s) s = hn_infer_vector(io, BIAS, hn_dim(w, 1), error);
  if (!s)
    s = hn_infer_dims(io, PAST, "the past", 5, (const int64_t[]){2, z.batch, z.heads, z.room, z.size}, error);
  static const uint32_t same[] = {W, BIAS, PAST};
  for (size_t i = 0; i < sizeof same / sizeof *same && !s; i++)
    s = hn_infer_same_dtype(io, X, same[i], error);
  if (!s) s = hn_key_mask_check(io, MASK, ADDED, z.batch, error);
  for (uint32_t i = BEFORE; i <= BEAMS && !s; i++)
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_I32), error);
  if (s) return s;
  const int64_t keys = z.room < 0 ? z.room : z.shared ? z.room : z.room + 1;
  hn_infer_set(io, Y, x->dtype, 3, (const int64_t[]){z.batch, 1, hidden});
  hn_infer_set(io, PRESENT, x->dtype, 5, (const int64_t[]){2, z.batch, z.heads, keys, z.size});
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t keys = hn_dim(io->input[PAST], 3), columns = hn_dim(io->input[W], 1);
  hn_cost_macs(cost, hn_known_count(io->input[X]) * (double)(columns > 0 ? columns : 0) +
                         (keys > 0 ? 2 * (double)keys * hn_known_count(io->output[Y]) : 0));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *w = call->input[W], *past = call->input[PAST];
  hone_tensor *present = call->n_outputs > PRESENT ? call->output[PRESENT] : NULL;
  hone_tensor qkv, *to = &qkv;
  hn_inner product;
  sizes z;
  hn_decoding d = {.keep = hn_call_has(call, MASK) ? call->input[MASK] : NULL,
                   .added = hn_call_has(call, ADDED) ? call->input[ADDED] : NULL,
                   .y = call->output[Y]};
  hone_status s = read(call->node, &x->desc, &w->desc, &past->desc, &z, error);
  if (!s) s = hn_decoding_before(call, z.shared ? BEFORE : UINT32_MAX, z.room, z.room, &d.before, error);
  if (!s) s = hn_decoding_beams(call, WIDTH, BEAMS, z.batch, d.before, &d, error);
  if (s) return s;
  const int64_t hidden = z.heads * z.size, dim[3] = {z.batch, 1, 3 * hidden};
  if (!hn_inner_tensor(call, x->desc.dtype, 3, dim, &qkv, error)) return HONE_ERROR_MEMORY;
  hn_inner_begin(&product, call->node, &hn_op_matmul, 13);
  if ((s = hn_inner_run(call, &product, call->input, 2, &to, 1, error))) return s;
  const size_t element = hone_dtype_size(x->desc.dtype);
  for (int i = 0; i < 3; i++) {
    const int64_t apart[4] = {z.batch, z.heads, 1, z.size};
    const hn_tokens from = hn_tokens_packed(&qkv, 1, 3 * hidden, i * hidden, z.size);
    if (!hn_tokens_gather(call, &from, hn_call_has(call, BIAS) ? call->input[BIAS] : NULL, i * hidden, apart,
                          &d.now[i], error))
      return HONE_ERROR_MEMORY;
  }
  for (int i = 0; i < 2; i++) {
    const int64_t keys = z.shared ? z.room : z.room + 1, one = z.batch * z.heads * z.size;
    const int64_t was[4] = {z.batch, z.heads, z.room, z.size}, is[4] = {z.batch, z.heads, keys, z.size};
    d.past[i] = (hone_tensor){hone_desc(x->desc.dtype, 4, was),
                              (char *)past->data + (size_t)(i * one * z.room) * element};
    d.present[i].desc = hone_desc(x->desc.dtype, 4, is);
    if (present) d.present[i].data = (char *)present->data + (size_t)(i * one * keys) * element;
  }
  return hn_decoding_run(call, &d, error);
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "mask_filter_value", .type = HONE_ATTR_FLOAT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "do_rotary", .type = HONE_ATTR_INT},
                                       {.name = "past_present_share_buffer", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(decoder_masked_self_attention) = {HONE_DESC_HEAD(hone_op_desc),
                                        .domain = "com.microsoft",
                                        .op_type = "DecoderMaskedSelfAttention",
                                        .since = 1,
                                        HN_INPUTS(2, 9),
                                        HN_OUTPUTS(1, 2),
                                        .types = HN_TYPES_FLOAT,
                                        .attrs = attrs,
                                        .infer = infer,
                                        .cost = cost,
                                        .reference = reference};
