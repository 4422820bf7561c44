/* MultiHeadAttention: attention between given Q, K and V, to which a bias may be added. K and V may be of an
 * earlier call (heads as a dimension), or lie with Q, or with each other, in one tensor. */
#include "model/ops/microsoft/attention/attend.h"

enum { Q, K, V, BIAS, MASK, ADDED, PAST_KEY, PAST_VALUE, PAST_LENGTH, BEAMS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

typedef struct sizes {
  int64_t batch, heads, queries, now, before, size, wide; /* now: keys of this call; wide: a head of V */
} sizes;

static hone_status read(const hone_node *n, const hone_tensor_desc *q, const hone_tensor_desc *k,
                        const hone_tensor_desc *v, const hone_tensor_desc *past, sizes *s,
                        hone_error *error) {
  const int64_t heads = hone_node_int(n, "num_heads", 0), unknown = HONE_DIM_UNKNOWN;
  *s = (sizes){unknown, heads, unknown, unknown, past ? hn_dim(past, 2) : 0, unknown, unknown};
  if (heads < 1) return hn_op_bad(n, error, "num_heads is %lld", (long long)heads);
  if (q->rank < 0) return HONE_OK;
  if (q->rank != 3 && q->rank != 5) return hn_op_bad(n, error, "the query has rank %d", (int)q->rank);
  s->batch = q->dim[0], s->queries = q->dim[1];
  if (q->rank == 5) { /* [batch, tokens, heads, 3, size] */
    if (hn_dims_differ(q->dim[2], heads) || hn_dims_differ(q->dim[3], 3))
      return hn_op_bad(n, error, "Q, K and V in one are not 3 x %lld heads", (long long)heads);
    s->now = s->queries, s->size = s->wide = q->dim[4];
    return HONE_OK;
  }
  if (q->dim[2] >= 0 && q->dim[2] % heads)
    return hn_op_bad(n, error, "%lld values a token are not %lld heads", (long long)q->dim[2],
                     (long long)heads);
  s->size = s->wide = q->dim[2] < 0 ? unknown : q->dim[2] / heads;
  if (!k) return hn_op_bad(n, error, "there is no key");
  if (k->rank >= 0 && (k->rank < 3 || k->rank > 5 || (k->rank != 5 && !v)))
    return hn_op_bad(n, error, "the key has rank %d%s", (int)k->rank, v ? "" : ", and there is no value");
  s->now = k->rank == 4 ? k->dim[2] : hn_dim(k, 1);
  if (v && k->rank != 5) {
    const int64_t all = hn_dim(v, 2);
    if (v->rank == 3 && all >= 0 && all % heads)
      return hn_op_bad(n, error, "%lld values a token are not %lld heads", (long long)all, (long long)heads);
    s->wide = v->rank == 4 ? v->dim[3] : v->rank == 3 && all >= 0 ? all / heads : unknown;
  }
  return HONE_OK;
}

static const hone_tensor_desc *input(const hone_infer *io, uint32_t i) {
  return hn_has_input(io, i) ? io->input[i] : NULL;
}

/* K and V and their past have the sizes that Q and they themselves say. */
static hone_status check_dims(const hone_infer *io, const sizes *z, hone_error *error) {
  const int64_t keys = z->size < 0 ? z->size : z->heads * z->size,
                values = z->wide < 0 ? z->wide : z->heads * z->wide;
  const int64_t side[2][3] = {{z->batch, z->now, keys}, {z->batch, z->now, values}},
                apart[2][4] = {{z->batch, z->heads, z->now, z->size}, {z->batch, z->heads, z->now, z->wide}},
                past[2][4] = {{z->batch, z->heads, z->before, z->size},
                              {z->batch, z->heads, z->before, z->wide}},
                both[5] = {z->batch, z->now, z->heads, 2, z->size};
  hone_status s = HONE_OK;
  for (uint32_t i = 0; i < 2 && !s && io->input[Q]->rank == 3; i++) {
    const char *name = i ? "the value" : "the key";
    const hone_tensor_desc *d = input(io, K + i);
    if (d && d->rank == 5)
      s = hn_infer_dims(io, K + i, name, 5, both, error);
    else if (d && d->rank == 4)
      s = hn_infer_dims(io, K + i, name, 4, apart[i], error);
    else
      s = hn_infer_dims(io, K + i, name, 3, side[i], error);
  }
  if (!s) s = hn_infer_dims(io, PAST_KEY, "past_key", 4, past[0], error);
  return s ? s : hn_infer_dims(io, PAST_VALUE, "past_value", 4, past[1], error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q];
  sizes z;
  hone_status s = read(io->node, q, input(io, K), input(io, V), input(io, PAST_KEY), &z, error);
  if (s) return s;
  if (hn_has_input(io, PAST_LENGTH) || hn_has_input(io, BEAMS))
    return hn_op_refuse(io->node, error, "past_sequence_length and cache_indirection");
  if (hn_has_input(io, PAST_KEY) != hn_has_input(io, PAST_VALUE))
    return hn_op_bad(io->node, error, "past_key and past_value must be given together");
  s = check_dims(io, &z, error);
  static const uint32_t same[] = {K, V, BIAS, PAST_KEY, PAST_VALUE};
  for (size_t i = 0; i < sizeof same / sizeof *same && !s; i++)
    s = hn_infer_same_dtype(io, Q, same[i], error);
  if (!s && z.size >= 0 && z.wide >= 0) s = hn_infer_vector(io, BIAS, z.heads * (2 * z.size + z.wide), error);
  if (!s) s = hn_key_mask_check(io, MASK, ADDED, z.batch, error);
  if (s) return s;
  const int64_t keys = z.before < 0 || z.now < 0 ? HONE_DIM_UNKNOWN : z.before + z.now,
                all = z.wide < 0 ? z.wide : z.wide * z.heads;
  hn_infer_set(io, Y, q->dtype, 3, (const int64_t[]){z.batch, z.queries, all});
  hn_infer_set(io, PRESENT_KEY, q->dtype, 4, (const int64_t[]){z.batch, z.heads, keys, z.size});
  hn_infer_set(io, PRESENT_VALUE, q->dtype, 4, (const int64_t[]){z.batch, z.heads, keys, z.wide});
  hn_infer_set(io, SCORES, q->dtype, 4, (const int64_t[]){z.batch, z.heads, z.queries, keys});
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  sizes z;
  const bool known =
      !read(io->node, io->input[Q], input(io, K), input(io, V), input(io, PAST_KEY), &z, NULL) && z.now > 0;
  hn_cost_macs(cost, known ? 2 * (double)(z.before + z.now) * hn_known_count(io->output[Y]) : 0);
}

static const hone_tensor *given(const hone_call *call, uint32_t i) {
  return hn_call_has(call, i) ? call->input[i] : NULL;
}

static hone_tensor *wanted(const hone_call *call, uint32_t i) {
  return i < call->n_outputs ? call->output[i] : NULL;
}

/* Where part i of Q, K and V lies. */
static hn_tokens part_of(const hone_call *call, const sizes *z, int i) {
  const hone_tensor *q = call->input[Q], *k = given(call, K), *own = given(call, (uint32_t)i);
  if (q->desc.rank == 5) { /* heads lie 3 heads apart */
    hn_tokens t = hn_tokens_packed(q, z->queries, z->heads * 3 * z->size, i * z->size, 3 * z->size);
    return t;
  }
  if (i && k->desc.rank == 5)
    return hn_tokens_packed(k, z->now, z->heads * 2 * z->size, (i - 1) * z->size, 2 * z->size);
  if (own->desc.rank == 4) return hn_tokens_apart(own);
  const int64_t size = i == V ? z->wide : z->size;
  return hn_tokens_packed(own, i ? z->now : z->queries, z->heads * size, 0, size);
}

static hone_status attend(hone_call *call, hone_error *error) {
  const hone_tensor *q = call->input[Q], *k = given(call, K), *v = given(call, V), *bias = given(call, BIAS),
                    *past = given(call, PAST_KEY), *added;
  hone_tensor part[3], room;
  sizes z;
  hone_status s = read(call->node, &q->desc, k ? &k->desc : NULL, v ? &v->desc : NULL,
                       past ? &past->desc : NULL, &z, error);
  if (s) return s;
  for (int i = 0; i < 3; i++) {
    const int64_t dim[4] = {z.batch, z.heads, i ? z.now : z.queries, i == V ? z.wide : z.size};
    const hn_tokens from = part_of(call, &z, i);
    const bool apart = from.from->desc.rank == 4; /* of an earlier call: its bias is in it */
    if (!hn_tokens_gather(call, &from, apart ? NULL : bias, i * z.heads * z.size, dim, &part[i], error))
      return HONE_ERROR_MEMORY;
  }
  const hn_key_mask mask = {.keep = given(call, MASK),
                            .bias = given(call, ADDED),
                            .filter = hone_node_float(call->node, "mask_filter_value", -10000.0f),
                            .batch = z.batch,
                            .queries = z.queries,
                            .before = z.before,
                            .keys = z.before + z.now};
  if ((s = hn_key_mask_sum(call, &mask, &room, &added, error))) return s;
  const hn_attend a = {.q = &part[Q],
                       .k = &part[K],
                       .v = &part[V],
                       .past_k = past,
                       .past_v = given(call, PAST_VALUE),
                       .added = added,
                       /* A single query is the last of its tokens, however many keys there are. */
                       .causal = hone_node_int(call->node, "unidirectional", 0) != 0 && z.queries > 1,
                       .window = -1,
                       .scale = hone_node_float(call->node, "scale", 0),
                       .y = call->output[Y],
                       .present_k = wanted(call, PRESENT_KEY),
                       .present_v = wanted(call, PRESENT_VALUE),
                       .seen = wanted(call, SCORES)};
  return hn_attend_run(call, &a, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_inner_wide(call, attend, error);
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "mask_filter_value", .type = HONE_ATTR_FLOAT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "unidirectional", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(multi_head_attention) = {HONE_DESC_HEAD(hone_op_desc),
                               .domain = "com.microsoft",
                               .op_type = "MultiHeadAttention",
                               .since = 1,
                               HN_INPUTS(1, 10),
                               HN_OUTPUTS(1, 4),
                               .types = HN_TYPES_FLOAT,
                               .attrs = attrs,
                               .infer = infer,
                               .cost = cost,
                               .reference = reference};
