/* LinearAttention: a state S of [d_k, d_v] for every head of keys, written and read token by token:
 *
 *   S = exp(decay) S             (gated, gated_delta)
 *   v = beta (v - S' k)          (delta, gated_delta)
 *   S = S + k v',  y = scale S' q
 *
 * Several heads of queries may read one state. */
#include "model/ops/attention/heads.h"

enum { Q, K, V, PAST, DECAY, BETA };

typedef struct sizes {
  int64_t batch, tokens, q_heads, heads, d_k, d_v; /* < 0: not known */
} sizes;

static int64_t at(const hone_tensor_desc *d, int32_t i) { return d->rank > i ? d->dim[i] : HONE_DIM_UNKNOWN; }

static hone_status find_sizes(const hone_node *node, const hone_tensor_desc *q, const hone_tensor_desc *k,
                              const hone_tensor_desc *v, sizes *out, hone_error *error) {
  hn_heads h[3];
  const hone_tensor_desc *d[3] = {q, k, v};
  static const char *const names[] = {"query", "key", "value"};
  for (int i = 0; i < 3; i++) {
    if (d[i]->rank >= 0 && d[i]->rank != 3)
      return hn_op_bad(node, error, "%s has rank %d, expected 3", names[i], (int)d[i]->rank);
    const hone_status s = hn_heads_of(node, names[i], d[i], i ? "kv_num_heads" : "q_num_heads", &h[i], error);
    if (s) return s;
  }
  *out = (sizes){h[Q].batch,
                 h[Q].tokens,
                 hone_node_int(node, "q_num_heads", 0),
                 hone_node_int(node, "kv_num_heads", 0),
                 h[Q].size >= 0 ? h[Q].size : h[K].size,
                 h[V].size};
  if (out->heads < 1 || out->q_heads < 1 || out->q_heads % out->heads)
    return hn_op_bad(node, error, "q_num_heads is %lld, no multiple of kv_num_heads, %lld",
                     (long long)out->q_heads, (long long)out->heads);
  for (int i = K; i <= V; i++)
    if ((h[i].batch >= 0 && h[Q].batch >= 0 && h[i].batch != h[Q].batch) ||
        (h[i].tokens >= 0 && h[Q].tokens >= 0 && h[i].tokens != h[Q].tokens) ||
        (i == K && h[K].size >= 0 && h[Q].size >= 0 && h[K].size != h[Q].size))
      return hn_op_bad(node, error, "%s does not fit query", names[i]);
  return HONE_OK;
}

static bool gated(const hone_node *node) {
  return strstr(hone_node_string(node, "update_rule", "gated_delta"), "gated") != NULL;
}
static bool delta(const hone_node *node) {
  return strstr(hone_node_string(node, "update_rule", "gated_delta"), "delta") != NULL;
}

/* decay or beta: [batch, tokens, a or b]. */
static hone_status check_gate(const hone_infer *io, uint32_t i, const sizes *n, int64_t a, int64_t b,
                              hone_error *error) {
  const char *name = i == DECAY ? "decay" : "beta";
  const hone_tensor_desc *d = hn_has_input(io, i) ? io->input[i] : NULL;
  if (!d)
    return hn_op_bad(io->node, error, "update_rule \"%s\" needs %s",
                     hone_node_string(io->node, "update_rule", "gated_delta"), name);
  if (d->rank >= 0 && (d->rank != 3 || (d->dim[0] >= 0 && n->batch >= 0 && d->dim[0] != n->batch) ||
                       (d->dim[1] >= 0 && n->tokens >= 0 && d->dim[1] != n->tokens) ||
                       (d->dim[2] >= 0 && a >= 0 && b >= 0 && d->dim[2] != a && d->dim[2] != b))) {
    char text[96];
    return hn_op_bad(io->node, error, "%s is %s, expected [%lld, %lld, %lld or %lld]", name,
                     hone_desc_format(d, text, sizeof text), (long long)n->batch, (long long)n->tokens,
                     (long long)a, (long long)b);
  }
  return hn_infer_same_dtype(io, Q, i, error);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  static const char *const rules[] = {"linear", "gated", "delta", "gated_delta", NULL};
  const char *rule = hone_node_string(io->node, "update_rule", "gated_delta");
  const hone_tensor_desc *past = hn_has_input(io, PAST) ? io->input[PAST] : NULL;
  sizes n;
  int known = 0;
  while (rules[known] && strcmp(rules[known], rule)) known++;
  if (!rules[known]) return hn_op_bad(io->node, error, "update_rule is \"%s\"", rule);
  hone_status s = find_sizes(io->node, io->input[Q], io->input[K], io->input[V], &n, error);
  if (!s) s = hn_infer_same_dtype(io, Q, K, error);
  if (!s) s = hn_infer_same_dtype(io, Q, V, error);
  if (!s) s = hn_infer_dtype_in(io, PAST, HN_TYPES_FLOAT, error);
  if (!s && gated(io->node))
    s = check_gate(io, DECAY, &n, n.heads, n.d_k < 0 ? n.d_k : n.heads * n.d_k, error);
  if (!s && delta(io->node)) s = check_gate(io, BETA, &n, n.heads, 1, error);
  if (s) return s;
  int64_t hidden = HONE_DIM_UNKNOWN;
  if (n.d_v >= 0 && __builtin_mul_overflow(n.q_heads, n.d_v, &hidden))
    return hn_op_bad(io->node, error, "%lld heads of %lld values are too large", (long long)n.q_heads,
                     (long long)n.d_v);
  const int64_t y[3] = {n.batch, n.tokens, hidden}, state[4] = {n.batch, n.heads, n.d_k, n.d_v};
  for (int32_t i = 0; past && i < past->rank; i++)
    if (past->rank != 4 || (past->dim[i] >= 0 && state[i] >= 0 && past->dim[i] != state[i])) {
      char text[96];
      return hn_op_bad(io->node, error, "past_state is %s, expected [%lld, %lld, %lld, %lld]",
                       hone_desc_format(past, text, sizeof text), (long long)state[0], (long long)state[1],
                       (long long)state[2], (long long)state[3]);
    }
  hn_infer_set(io, 0, io->input[Q]->dtype, 3, y);
  hn_infer_set(io, 1, past ? past->dtype : io->input[Q]->dtype, 4, state);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t heads = hone_node_int(io->node, "q_num_heads", 1),
                d_k = at(io->input[Q], 2) / hn_max(heads, 1);
  const double states = hn_known_count(io->input[V]) * (double)hn_max(d_k, 0);
  hn_cost_macs(cost, (delta(io->node) ? 3 : 2) * states);
}

typedef struct row {
  double *q, *k, *v, *decay, *y, *s;
} row;

/* One token: the state of a head is written, then read by its queries. */
static void step(hone_call *call, const sizes *n, const row *r, int64_t b, int64_t t, int64_t h,
                 double scale) {
  const int64_t token = b * n->tokens + t, each = n->q_heads / n->heads;
  hn_load_f64(r->k, call->input[K], (token * n->heads + h) * n->d_k, n->d_k);
  hn_load_f64(r->v, call->input[V], (token * n->heads + h) * n->d_v, n->d_v);
  if (gated(call->node)) {
    const hone_tensor *g = call->input[DECAY];
    const bool one = g->desc.dim[2] == n->heads;
    hn_load_f64(r->decay, g, one ? token * n->heads + h : (token * n->heads + h) * n->d_k, one ? 1 : n->d_k);
    for (int64_t i = 0; i < n->d_k; i++)
      for (int64_t m = 0; m < n->d_v; m++) r->s[i * n->d_v + m] *= exp(r->decay[one ? 0 : i]);
  }
  if (delta(call->node)) {
    const hone_tensor *beta = call->input[BETA];
    const double rate = hn_get_f64(beta, beta->desc.dim[2] == 1 ? token : token * n->heads + h);
    for (int64_t m = 0; m < n->d_v; m++) {
      double kept = 0;
      for (int64_t i = 0; i < n->d_k; i++) kept += r->s[i * n->d_v + m] * r->k[i];
      r->v[m] = rate * (r->v[m] - kept);
    }
  }
  for (int64_t i = 0; i < n->d_k; i++)
    for (int64_t m = 0; m < n->d_v; m++) r->s[i * n->d_v + m] += r->k[i] * r->v[m];
  for (int64_t head = h * each; head < (h + 1) * each; head++) {
    hn_load_f64(r->q, call->input[Q], (token * n->q_heads + head) * n->d_k, n->d_k);
    for (int64_t m = 0; m < n->d_v; m++) {
      double sum = 0;
      for (int64_t i = 0; i < n->d_k; i++) sum += r->q[i] * r->s[i * n->d_v + m];
      r->y[m] = scale * sum;
    }
    hn_store_f64(call->output[0], (token * n->q_heads + head) * n->d_v, r->y, n->d_v);
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  sizes n;
  const hone_tensor *const *in = call->input;
  const hone_status s = find_sizes(call->node, &in[Q]->desc, &in[K]->desc, &in[V]->desc, &n, error);
  if (s) return s;
  const double given = (double)hone_node_float(call->node, "scale", 0),
               scale = given != 0 ? given : 1 / sqrt((double)n.d_k);
  const int64_t state = n.d_k * n.d_v;
  double *all = hn_scratch(call, 3 * n.d_k + 2 * n.d_v + 1 + state, sizeof *all, error);
  if (!all) return HONE_ERROR_MEMORY;
  const row r = {all,
                 all + n.d_k,
                 all + 3 * n.d_k + 1,
                 all + 2 * n.d_k,
                 all + 3 * n.d_k + 1 + n.d_v,
                 all + 3 * n.d_k + 1 + 2 * n.d_v};
  for (int64_t line = 0; line < n.batch * n.heads; line++) {
    memset(r.s, 0, (size_t)state * sizeof *r.s);
    if (hn_call_has(call, PAST)) hn_load_f64(r.s, in[PAST], line * state, state);
    for (int64_t t = 0; t < n.tokens; t++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      step(call, &n, &r, line / n.heads, t, line % n.heads, scale);
    }
    if (call->n_outputs > 1 && call->output[1]) hn_store_f64(call->output[1], line * state, r.s, state);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "chunk_size", .type = HONE_ATTR_INT}, /* a hint */
                                       {.name = "kv_num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "q_num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "update_rule", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(linear_attention) = {HN_OP_HEAD,       .op_type = "LinearAttention", .since = 27,    HN_INPUTS(3, 6),
                           HN_OUTPUTS(1, 2), .types = HN_TYPES_FLOAT,      .attrs = attrs, .infer = infer,
                           .cost = cost,     .reference = reference};
