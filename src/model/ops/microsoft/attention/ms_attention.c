/* Attention of com.microsoft: Q, K and V are one product of the input, their heads side by side in its
 * columns. past and present: [2, batch, heads, tokens, size], keys first. */
#include "model/ops/microsoft/attention/attend.h"

enum { X, W, BIAS, MASK, PAST, ADDED };
extern const hone_op_desc hn_op_matmul;

typedef struct sizes {
  int64_t batch, tokens, before, heads, q, k, v; /* q, k, v: columns of the product */
} sizes;

static hone_status read(const hone_node *n, const hone_tensor_desc *x, const hone_tensor_desc *w,
                        const hone_tensor_desc *past, sizes *s, hone_error *error) {
  size_t given;
  const int64_t *each = hone_node_ints(n, "qkv_hidden_sizes", &given), columns = hn_dim(w, 1),
                third = columns < 0 ? columns : columns / 3;
  *s = (sizes){.batch = hn_dim(x, 0),
               .tokens = hn_dim(x, 1),
               .before = past ? hn_dim(past, 3) : 0,
               .heads = hone_node_int(n, "num_heads", 0),
               .q = third,
               .k = third,
               .v = third};
  if (given == 3) s->q = each[0], s->k = each[1], s->v = each[2];
  if (given && given != 3) return hn_op_bad(n, error, "qkv_hidden_sizes has %zu numbers", given);
  if (s->heads < 1) return hn_op_bad(n, error, "num_heads is %lld", (long long)s->heads);
  if (columns >= 0 && (s->q != s->k || s->q < 1 || s->v < 1 || s->q + s->k + s->v != columns ||
                       s->q % s->heads || s->v % s->heads))
    return hn_op_bad(n, error, "%lld columns of weights are not Q, K and V of %lld heads", (long long)columns,
                     (long long)s->heads);
  return HONE_OK;
}

static hone_status check(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *w = io->input[W];
  if (hone_node_int(io->node, "do_rotary", 0)) return hn_op_refuse(io->node, error, "do_rotary");
  if (hone_node_int(io->node, "past_present_share_buffer", 0))
    return hn_op_refuse(io->node, error, "past_present_share_buffer");
  if ((x->rank >= 0 && x->rank != 3) || (w->rank >= 0 && w->rank != 2))
    return hn_op_bad(io->node, error, "the input has rank %d and the weights %d, they must be 3 and 2",
                     (int)x->rank, (int)w->rank);
  if (hn_dims_differ(hn_dim(x, 2), hn_dim(w, 0)))
    return hn_op_bad(io->node, error, "the input has %lld values a token, the weights %lld rows",
                     (long long)hn_dim(x, 2), (long long)hn_dim(w, 0));
  hone_status s = hn_infer_same_dtype(io, X, W, error);
  if (!s) s = hn_infer_same_dtype(io, X, BIAS, error);
  if (!s) s = hn_infer_same_dtype(io, X, PAST, error);
  if (!s) s = hn_infer_vector(io, BIAS, hn_dim(w, 1), error);
  return s ? s : hn_key_mask_check(io, MASK, ADDED, hn_dim(x, 0), error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *past = hn_has_input(io, PAST) ? io->input[PAST] : NULL;
  sizes z;
  hone_status s = check(io, error);
  if (!s) s = read(io->node, x, io->input[W], past, &z, error);
  if (s) return s;
  const int64_t size = z.k < 0 ? z.k : z.k / z.heads,
                keys = z.before < 0 || z.tokens < 0 ? HONE_DIM_UNKNOWN : z.before + z.tokens;
  const int64_t want[5] = {2, z.batch, z.heads, HONE_DIM_UNKNOWN, size};
  for (int32_t i = 0; i < 5 && past && past->rank >= 0; i++)
    if (past->rank != 5 || hn_dims_differ(past->dim[i], want[i]))
      return hn_op_bad(io->node, error, "past is not keys and values of %lld heads", (long long)z.heads);
  hn_infer_set(io, 0, x->dtype, 3, (const int64_t[]){z.batch, z.tokens, z.v});
  hn_infer_set(io, 1, x->dtype, 5, (const int64_t[]){2, z.batch, z.heads, keys, size});
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const double keys = (double)(hn_dim(io->input[X], 1) > 0 ? hn_dim(io->input[X], 1) : 0),
               columns = (double)(hn_dim(io->input[W], 1) > 0 ? hn_dim(io->input[W], 1) : 0);
  hn_cost_macs(cost, hn_known_count(io->input[X]) * columns + 2 * keys * hn_known_count(io->output[0]));
}

static hone_status attend(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *past = hn_call_has(call, PAST) ? call->input[PAST] : NULL,
                    *bias = hn_call_has(call, BIAS) ? call->input[BIAS] : NULL, *added;
  hone_tensor *present = call->n_outputs > 1 ? call->output[1] : NULL;
  hone_tensor qkv, part[3], was[2], is[2], room;
  hn_inner product;
  sizes z;
  hone_status s = read(call->node, &x->desc, &call->input[W]->desc, past ? &past->desc : NULL, &z, error);
  if (s) return s;
  const int64_t columns = z.q + z.k + z.v, dim[3] = {z.batch, z.tokens, columns}, at[3] = {0, z.q, z.q + z.k},
                wide[3] = {z.q, z.k, z.v}, keys = z.before + z.tokens;
  if (!hn_inner_tensor(call, x->desc.dtype, 3, dim, &qkv, error)) return HONE_ERROR_MEMORY;
  hn_inner_begin(&product, call->node, &hn_op_matmul, 13);
  hone_tensor *to = &qkv;
  if ((s = hn_inner_run(call, &product, call->input, 2, &to, 1, error))) return s;
  for (int i = 0; i < 3; i++) {
    const int64_t size = wide[i] / z.heads, apart[4] = {z.batch, z.heads, z.tokens, size};
    const hn_tokens from = hn_tokens_packed(&qkv, z.tokens, columns, at[i], size);
    if (!hn_tokens_gather(call, &from, bias, at[i], apart, &part[i], error)) return HONE_ERROR_MEMORY;
  }
  for (int i = 0; i < 2; i++) {
    const size_t element = hone_dtype_size(x->desc.dtype);
    const int64_t size = z.k / z.heads, one = z.batch * z.heads * size;
    const int64_t d[4] = {z.batch, z.heads, z.before, size}, e[4] = {z.batch, z.heads, keys, size};
    if (past)
      was[i] = (hone_tensor){hone_desc(x->desc.dtype, 4, d),
                             (char *)past->data + (size_t)(i * one * z.before) * element};
    if (present)
      is[i] = (hone_tensor){hone_desc(x->desc.dtype, 4, e),
                            (char *)present->data + (size_t)(i * one * keys) * element};
  }
  const hn_key_mask mask = {.keep = hn_call_has(call, MASK) ? call->input[MASK] : NULL,
                            .bias = hn_call_has(call, ADDED) ? call->input[ADDED] : NULL,
                            .filter = hone_node_float(call->node, "mask_filter_value", -10000.0f),
                            .batch = z.batch,
                            .queries = z.tokens,
                            .before = z.before,
                            .keys = keys};
  if ((s = hn_key_mask_sum(call, &mask, &room, &added, error))) return s;
  const hn_attend a = {.q = &part[0],
                       .k = &part[1],
                       .v = &part[2],
                       .past_k = past ? &was[0] : NULL,
                       .past_v = past ? &was[1] : NULL,
                       .added = added,
                       .causal = hone_node_int(call->node, "unidirectional", 0) != 0,
                       .window = -1,
                       .scale = hone_node_float(call->node, "scale", 0),
                       .y = call->output[0],
                       .present_k = present ? &is[0] : NULL,
                       .present_v = present ? &is[1] : NULL};
  return hn_attend_run(call, &a, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_inner_wide(call, attend, error);
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "unidirectional", .type = HONE_ATTR_INT},
                                       {.name = "qkv_hidden_sizes", .type = HONE_ATTR_INTS},
                                       {.name = "mask_filter_value", .type = HONE_ATTR_FLOAT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "do_rotary", .type = HONE_ATTR_INT},
                                       {.name = "rotary_embedding_dim", .type = HONE_ATTR_INT},
                                       {.name = "past_present_share_buffer", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(ms_attention) = {HONE_DESC_HEAD(hone_op_desc),
                       .domain = "com.microsoft",
                       .op_type = "Attention",
                       .since = 1,
                       HN_INPUTS(2, 6),
                       HN_OUTPUTS(1, 2),
                       .types = HN_TYPES_FLOAT,
                       .attrs = attrs,
                       .infer = infer,
                       .cost = cost,
                       .reference = reference};
