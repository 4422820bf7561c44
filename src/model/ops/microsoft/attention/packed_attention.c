/* PackedAttention: Attention of com.microsoft of the tokens of several inputs, one after the other. */
#include "model/ops/microsoft/attention/packed.h"

enum { X, W, BIAS, OFFSETS, ENDS, ADDED };
extern const hone_op_desc hn_op_matmul;

typedef struct sizes {
  int64_t heads, q, v; /* columns of Q (and of K), and of V */
} sizes;

static hone_status read(const hone_node *n, const hone_tensor_desc *w, sizes *s, hone_error *error) {
  size_t given;
  const int64_t *each = hone_node_ints(n, "qkv_hidden_sizes", &given), columns = hn_dim(w, 1),
                third = columns < 0 ? columns : columns / 3;
  *s = (sizes){hone_node_int(n, "num_heads", 0), third, third};
  if (given && given != 3) return hn_op_bad(n, error, "qkv_hidden_sizes has %zu numbers", given);
  if (given && each[0] != each[1]) return hn_op_bad(n, error, "Q and K have different sizes");
  if (given) s->q = each[0], s->v = each[2];
  if (s->heads < 1) return hn_op_bad(n, error, "num_heads is %lld", (long long)s->heads);
  if (columns >= 0 && (s->q < 1 || s->v < 1 || s->q > columns || s->v != columns - 2 * s->q ||
                       s->q % s->heads || s->v % s->heads))
    return hn_op_bad(n, error, "%lld columns of weights are not Q, K and V of %lld heads", (long long)columns,
                     (long long)s->heads);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *w = io->input[W];
  sizes z;
  for (uint32_t i = OFFSETS; i <= ENDS; i++)
    if (!hn_has_input(io, i)) return hn_op_bad(io->node, error, "input %u is left out", i);
  if ((x->rank >= 0 && x->rank != 2) || (w->rank >= 0 && w->rank != 2))
    return hn_op_bad(io->node, error, "the input has rank %d and the weights %d, both must be 2",
                     (int)x->rank, (int)w->rank);
  if (hn_dims_differ(hn_dim(x, 1), hn_dim(w, 0)))
    return hn_op_bad(io->node, error, "the input has %lld values a token, the weights %lld rows",
                     (long long)hn_dim(x, 1), (long long)hn_dim(w, 0));
  hone_status s = read(io->node, w, &z, error);
  if (!s) s = hn_infer_same_dtype(io, X, W, error);
  if (!s) s = hn_infer_same_dtype(io, X, BIAS, error);
  if (!s) s = hn_infer_vector(io, BIAS, hn_dim(w, 1), error);
  if (!s) s = hn_packed_check(io, OFFSETS, error);
  if (!s) hn_infer_set(io, 0, x->dtype, 2, (const int64_t[]){hn_dim(x, 0), z.v});
  return s;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const double columns = (double)(hn_dim(io->input[W], 1) > 0 ? hn_dim(io->input[W], 1) : 0),
               longest = (double)(hn_dim(io->input[OFFSETS], 1) > 0 ? hn_dim(io->input[OFFSETS], 1) : 0);
  hn_cost_macs(cost, hn_known_count(io->input[X]) * columns + 2 * longest * hn_known_count(io->output[0]));
}

static hone_status attend(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *w = call->input[W];
  hone_tensor qkv, *to = &qkv;
  hn_inner product;
  sizes z;
  hone_status s = read(call->node, &w->desc, &z, error);
  if (s) return s;
  const int64_t tokens = x->desc.dim[0], columns = w->desc.dim[1], dim[2] = {tokens, columns};
  if (!hn_inner_tensor(call, x->desc.dtype, 2, dim, &qkv, error)) return HONE_ERROR_MEMORY;
  hn_inner_begin(&product, call->node, &hn_op_matmul, 13);
  if ((s = hn_inner_run(call, &product, call->input, 2, &to, 1, error))) return s;
  const hn_packed p = {.part = {hn_tokens_packed(&qkv, tokens, columns, 0, z.q / z.heads),
                                hn_tokens_packed(&qkv, tokens, columns, z.q, z.q / z.heads),
                                hn_tokens_packed(&qkv, tokens, columns, 2 * z.q, z.v / z.heads)},
                       .bias = hn_call_has(call, BIAS) ? call->input[BIAS] : NULL,
                       .tokens = tokens,
                       .heads = z.heads,
                       .size = z.q / z.heads,
                       .wide = z.v / z.heads,
                       .offsets = call->input[OFFSETS],
                       .ends = call->input[ENDS],
                       .added = hn_call_has(call, ADDED) ? call->input[ADDED] : NULL};
  return hn_packed_run(call, &p, call->output[0], error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_inner_wide(call, attend, error);
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "qkv_hidden_sizes", .type = HONE_ATTR_INTS},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(packed_attention) = {HONE_DESC_HEAD(hone_op_desc),
                           .domain = "com.microsoft",
                           .op_type = "PackedAttention",
                           .since = 1,
                           HN_INPUTS(2, 6),
                           HN_OUTPUTS(1, 1),
                           .types = HN_TYPES_FLOAT,
                           .attrs = attrs,
                           .infer = infer,
                           .cost = cost,
                           .reference = reference};
