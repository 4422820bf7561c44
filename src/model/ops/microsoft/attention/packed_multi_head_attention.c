/* PackedMultiHeadAttention: attention between given Q, K and V of the tokens of several inputs, one after the
 * other. All three may lie in one tensor, [tokens, heads, 3, size]. */
#include "model/ops/microsoft/attention/packed.h"

enum { Q, K, V, BIAS, OFFSETS, ENDS, ADDED };

typedef struct sizes {
  int64_t tokens, heads, size, wide;
} sizes;

static hone_status read(const hone_node *n, const hone_tensor_desc *q, const hone_tensor_desc *v, sizes *s,
                        hone_error *error) {
  const int64_t heads = hone_node_int(n, "num_heads", 0);
  *s = (sizes){hn_dim(q, 0), heads, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
  if (heads < 1) return hn_op_bad(n, error, "num_heads is %lld", (long long)heads);
  if (q->rank < 0) return HONE_OK;
  if (q->rank == 4) {
    if (hn_dims_differ(q->dim[1], heads) || hn_dims_differ(q->dim[2], 3))
      return hn_op_bad(n, error, "Q, K and V in one are not %lld heads x 3", (long long)heads);
    s->size = s->wide = q->dim[3];
    return HONE_OK;
  }
  if (q->rank != 2) return hn_op_bad(n, error, "the query has rank %d", (int)q->rank);
  const int64_t all[2] = {q->dim[1], hn_dim(v, 1)};
  for (int i = 0; i < 2; i++)
    if (all[i] >= 0 && all[i] % heads)
      return hn_op_bad(n, error, "%lld values a token are not %lld heads", (long long)all[i],
                       (long long)heads);
  s->size = all[0] < 0 ? all[0] : all[0] / heads;
  s->wide = all[1] < 0 ? all[1] : all[1] / heads;
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q], *v = hn_has_input(io, V) ? io->input[V] : NULL;
  sizes z;
  for (uint32_t i = OFFSETS; i <= ENDS; i++)
    if (!hn_has_input(io, i)) return hn_op_bad(io->node, error, "input %u is left out", i);
  hone_status s = read(io->node, q, v, &z, error);
  if (!s && q->rank == 2 && (!hn_has_input(io, K) || !v))
    s = hn_op_bad(io->node, error, "there is no key, or no value");
  if (!s && q->rank == 4 && (hn_has_input(io, K) || v))
    s = hn_op_bad(io->node, error, "there are two keys, or values");
  if (!s) s = hn_infer_dims(io, K, "the key", 2, (const int64_t[]){z.tokens, hn_dim(q, 1)}, error);
  if (!s) s = hn_infer_dims(io, V, "the value", 2, (const int64_t[]){z.tokens, hn_dim(v, 1)}, error);
  for (uint32_t i = K; i <= BIAS && !s; i++) s = hn_infer_same_dtype(io, Q, i, error);
  if (!s && z.size >= 0 && z.wide >= 0) s = hn_infer_vector(io, BIAS, z.heads * (2 * z.size + z.wide), error);
  if (!s) s = hn_packed_check(io, OFFSETS, error);
  if (!s)
    hn_infer_set(io, 0, q->dtype, 2,
                 (const int64_t[]){z.tokens, z.wide < 0 ? HONE_DIM_UNKNOWN : z.heads * z.wide});
  return s;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t longest = hn_dim(io->input[OFFSETS], 1);
  hn_cost_macs(cost, longest > 0 ? 2 * (double)longest * hn_known_count(io->output[0]) : 0);
}

static hone_status attend(hone_call *call, hone_error *error) {
  const hone_tensor *q = call->input[Q], *v = hn_call_has(call, V) ? call->input[V] : NULL;
  sizes z;
  const hone_status s = read(call->node, &q->desc, v ? &v->desc : NULL, &z, error);
  if (s) return s;
  hn_packed p = {.bias = hn_call_has(call, BIAS) ? call->input[BIAS] : NULL,
                 .tokens = z.tokens,
                 .heads = z.heads,
                 .size = z.size,
                 .wide = z.wide,
                 .offsets = call->input[OFFSETS],
                 .ends = call->input[ENDS],
                 .added = hn_call_has(call, ADDED) ? call->input[ADDED] : NULL};
  for (int i = 0; i < 3; i++) {
    const int64_t size = i == 2 ? z.wide : z.size;
    p.part[i] = q->desc.rank == 4
                    ? (hn_tokens){.from = q, .at = i * size, .token = 3 * z.heads * size, .head = 3 * size}
                    : hn_tokens_packed(call->input[i], z.tokens, z.heads * size, 0, size);
  }
  return hn_packed_run(call, &p, call->output[0], error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_inner_wide(call, attend, error);
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "mask_filter_value", .type = HONE_ATTR_FLOAT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(packed_multi_head_attention) = {HONE_DESC_HEAD(hone_op_desc),
                                      .domain = "com.microsoft",
                                      .op_type = "PackedMultiHeadAttention",
                                      .since = 1,
                                      HN_INPUTS(1, 7),
                                      HN_OUTPUTS(1, 1),
                                      .types = HN_TYPES_FLOAT,
                                      .attrs = attrs,
                                      .infer = infer,
                                      .cost = cost,
                                      .reference = reference};
