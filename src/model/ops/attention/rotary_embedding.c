/* RotaryEmbedding: pairs of a head's values turned by the angle that belongs to the token's position. Pairs
 * are neighbours (interleaved) or lie half of the turned part apart. */
#include "model/ops/attention/heads.h"

enum { X, COS, SIN, POSITIONS };

static hone_status check_cache(const hone_infer *io, uint32_t i, const hn_heads *x, hone_error *error) {
  const hone_tensor_desc *c = io->input[i];
  const bool picked = hn_has_input(io, POSITIONS);
  const int64_t turned = hone_node_int(io->node, "rotary_embedding_dim", 0), half = turned ? turned / 2
                                                                                    : x->size < 0
                                                                                        ? x->size
                                                                                        : x->size / 2;
  const char *name = i == COS ? "cos_cache" : "sin_cache";
  if (turned < 0 || turned % 2 || (x->size >= 0 && (turned > x->size || (!turned && x->size % 2))))
    return hn_op_bad(io->node, error, "%lld of %lld values of a head cannot be turned in pairs",
                     (long long)(turned ? turned : x->size), (long long)x->size);
  if (c->rank < 0) return HONE_OK;
  const int32_t rank = picked ? 2 : 3;
  if (c->rank != rank)
    return hn_op_bad(io->node, error, "%s has rank %d, expected %d %s position_ids", name, (int)c->rank,
                     (int)rank, picked ? "with" : "without");
  /* Both caches have a row for every position, however many these are. */
  const hone_tensor_desc *cos = io->input[COS];
  const int64_t rows = cos->rank == rank ? cos->dim[0] : HONE_DIM_UNKNOWN;
  const int64_t want[3] = {x->batch, x->tokens, half};
  for (int32_t d = 0; d < rank; d++) {
    const int64_t expected = picked && d == 0 ? rows : want[picked ? d + 1 : d];
    if (c->dim[d] >= 0 && expected >= 0 && c->dim[d] != expected)
      return hn_op_bad(io->node, error, "%s has %lld in dimension %d, expected %lld", name,
                       (long long)c->dim[d], (int)d, (long long)expected);
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *p = hn_has_input(io, POSITIONS) ? io->input[POSITIONS] : NULL;
  hn_heads heads;
  hone_status s = hn_heads_of(io->node, "X", x, "num_heads", &heads, error);
  for (uint32_t i = COS; i <= SIN && !s; i++) {
    s = hn_infer_same_dtype(io, X, i, error);
    if (!s) s = check_cache(io, i, &heads, error);
  }
  if (!s) s = hn_infer_dtype_in(io, POSITIONS, HONE_TYPES(HONE_DTYPE_I64), error);
  if (!s && p && p->rank >= 0 &&
      (p->rank != 2 || (p->dim[0] >= 0 && heads.batch >= 0 && p->dim[0] != heads.batch) ||
       (p->dim[1] >= 0 && heads.tokens >= 0 && p->dim[1] != heads.tokens)))
    s = hn_op_bad(io->node, error, "position_ids do not have a number for each of %lld x %lld tokens",
                  (long long)heads.batch, (long long)heads.tokens);
  if (s) return s;
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 3 * hn_known_count(io->output[0]));
}

/* The row of the caches for a token; < 0: none. */
static int64_t cache_row(const hone_call *call, int64_t token) {
  if (!hn_call_has(call, POSITIONS)) return token;
  const int64_t row = hn_get_i64(call->input[POSITIONS], token);
  return row < call->input[COS]->desc.dim[0] ? row : -1;
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_heads x;
  hone_status s = hn_heads_of(call->node, "X", &call->input[X]->desc, "num_heads", &x, error);
  if (s) return s;
  const int64_t given = hone_node_int(call->node, "rotary_embedding_dim", 0),
                half = (given ? given : x.size) / 2;
  const bool neighbours = hone_node_int(call->node, "interleaved", 0) != 0;
  double *v = hn_scratch(call, x.size, sizeof *v, error),
         *c = v ? hn_scratch(call, half, sizeof *c, error) : NULL,
         *w = c ? hn_scratch(call, half, sizeof *w, error) : NULL;
  if (!w) return HONE_ERROR_MEMORY;
  for (int64_t token = 0; token < x.batch * x.tokens; token++) {
    const int64_t row = cache_row(call, token);
    if (row < 0)
      return hn_op_bad(call->node, error, "position %lld is not in the caches of %lld",
                       (long long)hn_get_i64(call->input[POSITIONS], token),
                       (long long)call->input[COS]->desc.dim[0]);
    if ((s = hn_call_check(call, error))) return s;
    hn_load_f64(c, call->input[COS], row * half, half);
    hn_load_f64(w, call->input[SIN], row * half, half);
    for (int64_t h = 0; h < x.heads; h++) {
      const int64_t at = hn_heads_at(&x, token / x.tokens, h, token % x.tokens);
      hn_load_f64(v, call->input[X], at, x.size);
      for (int64_t i = 0; i < half; i++) {
        double *a = &v[neighbours ? 2 * i : i], *b = &v[neighbours ? 2 * i + 1 : i + half];
        const double real = c[i] * *a - w[i] * *b, imaginary = w[i] * *a + c[i] * *b;
        *a = real, *b = imaginary;
      }
      hn_store_f64(call->output[0], at, v, x.size);
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "interleaved", .type = HONE_ATTR_INT},
                                       {.name = "num_heads", .type = HONE_ATTR_INT},
                                       {.name = "rotary_embedding_dim", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(rotary_embedding) = {HN_OP_HEAD,       .op_type = "RotaryEmbedding", .since = 23,    HN_INPUTS(3, 4),
                           HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT,      .attrs = attrs, .infer = infer,
                           .cost = cost,     .reference = reference};
