/* GatedRelativePositionBias: relative positions, weighed for each query by gates that its own vector opens.
 *
 *   u, r = Sigmoid of the sums of both halves of (query + query_bias) weight + bias     for each head
 *   y = (u (r eco_a - 1) + 2) rel_pos
 *
 * With token_offset the queries are packed; those of the padding are zero. */
#include "model/ops/microsoft/common/inner.h"

enum { Q, Q_BIAS, REL_POS, W, BIAS, ECO_A, OFFSETS };

typedef struct sizes {
  int64_t batch, tokens, heads, size, columns;
} sizes;

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *q = io->input[Q], *w = io->input[W],
                         *at = hn_has_input(io, OFFSETS) ? io->input[OFFSETS] : NULL;
  const int64_t heads = hone_node_int(io->node, "num_heads", 0), size = hn_dim(w, 0), columns = hn_dim(w, 1);
  hone_status s = HONE_OK;
  if (heads < 1) return hn_op_bad(io->node, error, "num_heads is %lld", (long long)heads);
  for (uint32_t i = Q_BIAS; i <= ECO_A && !s; i++) s = hn_infer_same_dtype(io, Q, i, error);
  if (!s) s = hn_infer_dtype_in(io, OFFSETS, HONE_TYPES(HONE_DTYPE_I32), error);
  if (!s && q->rank >= 0 && q->rank != (at ? 2 : 3))
    s = hn_op_bad(io->node, error, "the query has rank %d", (int)q->rank);
  if (!s && at && at->rank >= 0 && at->rank != 2)
    s = hn_op_bad(io->node, error, "token_offset has rank %d", (int)at->rank);
  if (!s && columns >= 0 && columns % 2)
    s = hn_op_bad(io->node, error, "%lld columns of weights have no two halves", (long long)columns);
  if (s) return s;
  const int64_t batch = hn_dim(at ? at : q, 0), tokens = hn_dim(at ? at : q, 1),
                all = size < 0 ? size : size * heads, y[4] = {batch, heads, tokens, tokens};
  if (hn_dims_differ(hn_dim(q, at ? 1 : 2), all))
    return hn_op_bad(io->node, error, "%lld values a token are not %lld heads of %lld",
                     (long long)hn_dim(q, at ? 1 : 2), (long long)heads, (long long)size);
  s = hn_infer_dims(io, W, "the weights", 2, (const int64_t[]){size, columns}, error);
  if (!s) s = hn_infer_vector(io, Q_BIAS, all, error);
  if (!s) s = hn_infer_dims(io, REL_POS, "rel_pos", 4, (const int64_t[]){1, heads, tokens, tokens}, error);
  if (!s) s = hn_infer_vector(io, BIAS, columns, error);
  if (!s) s = hn_infer_dims(io, ECO_A, "eco_a", 4, (const int64_t[]){1, heads, 1, 1}, error);
  if (!s) hn_infer_set(io, 0, q->dtype, 4, y);
  return s;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t columns = hn_dim(io->input[W], 1);
  hn_cost_macs(cost, (columns > 0 ? (double)columns : 0) * hn_known_count(io->input[Q]) +
                         hn_known_count(io->output[0]));
}

/* Which row of the queries each token is, -1 of the padding. */
static hone_status rows_of(hone_call *call, int64_t all, int64_t **out, hone_error *error) {
  int64_t *row = *out = hn_scratch(call, all, sizeof *row, error);
  const bool packed = hn_call_has(call, OFFSETS);
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < all; i++) row[i] = packed ? -1 : i;
  const int64_t given = packed ? call->input[Q]->desc.dim[0] : 0;
  if (given > all)
    return hn_op_bad(call->node, error, "%lld tokens for %lld places", (long long)given, (long long)all);
  for (int64_t i = 0; i < given; i++) {
    const int64_t at = hn_get_i64(call->input[OFFSETS], i);
    if (at < 0 || at >= all)
      return hn_op_bad(call->node, error, "place %lld is not among %lld", (long long)at, (long long)all);
    row[at] = i;
  }
  return HONE_OK;
}

static double gate(const double *x, const double *w, const double *bias, const sizes *z, int64_t half) {
  double sum = 0;
  for (int64_t c = half * z->columns / 2; c < (half + 1) * z->columns / 2; c++) {
    sum += bias[c];
    for (int64_t i = 0; i < z->size; i++) sum += x[i] * w[i * z->columns + c];
  }
  return 1 / (1 + exp(-sum));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const int64_t *y = call->output[0]->desc.dim;
  const sizes z = {y[0], y[2], y[1], call->input[W]->desc.dim[0], call->input[W]->desc.dim[1]};
  const int64_t wide = z.heads * z.size;
  int64_t *row_of;
  const hone_status s = rows_of(call, z.batch * z.tokens, &row_of, error);
  if (s) return s;
  const double *w = hn_all_f64(call, call->input[W], error),
               *bias = w ? hn_all_f64(call, call->input[BIAS], error) : NULL,
               *q_bias = bias ? hn_all_f64(call, call->input[Q_BIAS], error) : NULL;
  double *x = q_bias ? hn_scratch(call, z.size, sizeof *x, error) : NULL,
         *row = x ? hn_scratch(call, z.tokens, sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < z.batch * z.heads * z.tokens; i++) {
    const int64_t b = i / (z.heads * z.tokens), h = i / z.tokens % z.heads, t = i % z.tokens,
                  from = row_of[b * z.tokens + t];
    if (from < 0)
      memset(x, 0, (size_t)z.size * sizeof *x);
    else
      hn_load_f64(x, call->input[Q], from * wide + h * z.size, z.size);
    for (int64_t k = 0; k < z.size; k++) x[k] += q_bias[h * z.size + k];
    const double u = gate(x, w, bias, &z, 0), r = gate(x, w, bias, &z, 1),
                 by = u * (r * hn_get_f64(call->input[ECO_A], h) - 1) + 2;
    hn_load_f64(row, call->input[REL_POS], (h * z.tokens + t) * z.tokens, z.tokens);
    for (int64_t k = 0; k < z.tokens; k++) row[k] *= by;
    hn_store_f64(call->output[0], i * z.tokens, row, z.tokens);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true}, {0}};

HN_OP(gated_relative_position_bias) = {HONE_DESC_HEAD(hone_op_desc),
                                       .domain = "com.microsoft",
                                       .op_type = "GatedRelativePositionBias",
                                       .since = 1,
                                       HN_INPUTS(6, 7),
                                       HN_OUTPUTS(1, 1),
                                       .types = HN_TYPES_FLOAT,
                                       .attrs = attrs,
                                       .infer = infer,
                                       .cost = cost,
                                       .reference = reference};
