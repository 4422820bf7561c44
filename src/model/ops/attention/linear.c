/* LinearAttention of ONNX and of com.microsoft: see linear.h. */
#include "model/ops/attention/linear.h"

#include "model/ir/graph.h"
#include "model/ops/attention/heads.h"

enum { Q, K, V, PAST, DECAY, BETA };

static int64_t at(const hone_tensor_desc *d, int32_t i) { return d->rank > i ? d->dim[i] : HONE_DIM_UNKNOWN; }

/* Heads of keys are as many as the operand has vectors of the queries' size: com.microsoft shares one of them
 * between several states, too. */
static hone_status find_key_heads(const hone_node *node, const hone_tensor_desc *k, hn_linear_sizes *n,
                                  hone_error *error) {
  const int64_t width = at(k, 2);
  n->k_heads = n->heads;
  if (!node->domain[0] || width < 0 || n->d_k < 0) return HONE_OK;
  n->k_heads = n->d_k ? width / n->d_k : n->heads;
  if (n->k_heads < 1 || n->k_heads * n->d_k != width || n->heads % n->k_heads)
    return hn_op_bad(node, error,
                     "key has %lld numbers a token, expected %lld or a divisor of it in vectors of %lld",
                     (long long)width, (long long)(n->heads * n->d_k), (long long)n->d_k);
  return HONE_OK;
}

hone_status hn_linear_find(const hone_node *node, const hone_tensor_desc *q, const hone_tensor_desc *k,
                           const hone_tensor_desc *v, hn_linear_sizes *out, hone_error *error) {
  const bool microsoft = node->domain[0] != 0;
  hn_heads h[3] = {{0}};
  const hone_tensor_desc *d[3] = {q, k, v};
  static const char *const names[] = {"query", "key", "value"};
  for (int i = 0; i < 3; i++) {
    if (d[i]->rank >= 0 && d[i]->rank != 3)
      return hn_op_bad(node, error, "%s has rank %d, expected 3", names[i], (int)d[i]->rank);
    h[i] = (hn_heads){.batch = at(d[i], 0), .tokens = at(d[i], 1), .size = HONE_DIM_UNKNOWN};
    if (microsoft && i == K) continue;
    const hone_status s = hn_heads_of(node, names[i], d[i], i ? "kv_num_heads" : "q_num_heads", &h[i], error);
    if (s) return s;
  }
  *out = (hn_linear_sizes){.batch = h[Q].batch,
                           .tokens = h[Q].tokens,
                           .q_heads = hone_node_int(node, "q_num_heads", 0),
                           .heads = hone_node_int(node, "kv_num_heads", 0),
                           .d_k = h[Q].size >= 0 ? h[Q].size : h[K].size,
                           .d_v = h[V].size,
                           .window = hone_node_int(node, "state_window", 0)};
  const bool inverse = microsoft && out->q_heads > 0 && out->heads > out->q_heads;
  if (out->heads < 1 || out->q_heads < 1 ||
      (inverse ? out->heads % out->q_heads : out->q_heads % out->heads) != 0)
    return hn_op_bad(node, error, "q_num_heads is %lld, no multiple %sof kv_num_heads, %lld",
                     (long long)out->q_heads, microsoft ? "or divisor " : "", (long long)out->heads);
  out->y_heads = inverse ? out->heads : out->q_heads;
  if (out->window < 0 || out->window > HN_LINEAR_WINDOW)
    return hn_op_bad(node, error, "state_window is %lld, expected 0 to %d", (long long)out->window,
                     HN_LINEAR_WINDOW);
  for (int i = K; i <= V; i++)
    if ((h[i].batch >= 0 && h[Q].batch >= 0 && h[i].batch != h[Q].batch) ||
        (h[i].tokens >= 0 && h[Q].tokens >= 0 && h[i].tokens != h[Q].tokens) ||
        (i == K && h[K].size >= 0 && h[Q].size >= 0 && h[K].size != h[Q].size))
      return hn_op_bad(node, error, "%s does not fit query", names[i]);
  return find_key_heads(node, k, out, error);
}

static bool gated(const hone_node *node) {
  return strstr(hone_node_string(node, "update_rule", "gated_delta"), "gated") != NULL;
}
static bool delta(const hone_node *node) {
  return strstr(hone_node_string(node, "update_rule", "gated_delta"), "delta") != NULL;
}

/* decay or beta: [batch, tokens, a or b]. */
static hone_status check_gate(const hone_infer *io, uint32_t i, const hn_linear_sizes *n, int64_t a,
                              int64_t b, hone_error *error) {
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

hone_status hn_linear_infer(const hone_infer *io, hone_error *error) {
  static const char *const rules[] = {"linear", "gated", "delta", "gated_delta", NULL};
  const char *rule = hone_node_string(io->node, "update_rule", "gated_delta");
  const hone_tensor_desc *past = hn_has_input(io, PAST) ? io->input[PAST] : NULL;
  hn_linear_sizes n;
  int known = 0;
  while (rules[known] && strcmp(rules[known], rule)) known++;
  if (!rules[known]) return hn_op_bad(io->node, error, "update_rule is \"%s\"", rule);
  hone_status s = hn_linear_find(io->node, io->input[Q], io->input[K], io->input[V], &n, error);
  if (!s) s = hn_infer_same_dtype(io, Q, K, error);
  if (!s) s = hn_infer_same_dtype(io, Q, V, error);
  if (!s) s = hn_infer_dtype_in(io, PAST, HN_TYPES_FLOAT, error);
  if (!s && gated(io->node))
    s = check_gate(io, DECAY, &n, n.heads, n.d_k < 0 ? n.d_k : n.heads * n.d_k, error);
  if (!s && delta(io->node)) s = check_gate(io, BETA, &n, n.heads, 1, error);
  if (s) return s;
  int64_t hidden = HONE_DIM_UNKNOWN;
  if (n.d_v >= 0 && __builtin_mul_overflow(n.y_heads, n.d_v, &hidden))
    return hn_op_bad(io->node, error, "%lld heads of %lld values are too large", (long long)n.y_heads,
                     (long long)n.d_v);
  const int64_t y[3] = {n.batch, n.tokens, hidden}, all[5] = {n.window, n.batch, n.heads, n.d_k, n.d_v},
                *state = n.window ? all : all + 1;
  const int32_t rank = n.window ? 5 : 4;
  for (int32_t i = 0; past && i < past->rank; i++)
    if (past->rank != rank || (past->dim[i] >= 0 && state[i] >= 0 && past->dim[i] != state[i])) {
      char text[96], want[96];
      const hone_tensor_desc d = hone_desc(past->dtype, rank, state);
      return hn_op_bad(io->node, error, "past_state is %s, expected %s",
                       hone_desc_format(past, text, sizeof text), hone_desc_format(&d, want, sizeof want));
    }
  hn_infer_set(io, 0, io->input[Q]->dtype, 3, y);
  hn_infer_set(io, 1, past ? past->dtype : io->input[Q]->dtype, rank, state);
  return HONE_OK;
}

void hn_linear_cost(const hone_infer *io, hone_cost *cost) {
  const int64_t heads = hone_node_int(io->node, "q_num_heads", 1),
                d_k = at(io->input[Q], 2) / hn_max(heads, 1);
  const double states = hn_known_count(io->input[V]) * (double)hn_max(d_k, 0);
  hn_cost_macs(cost, (delta(io->node) ? 3 : 2) * states);
}

typedef struct row {
  double *q, *k, *v, *decay, *y, *s;
} row;

/* One token: the state of a head is written, then read by its queries. */
static void step(hone_call *call, const hn_linear_sizes *n, const row *r, int64_t b, int64_t t, int64_t h,
                 double scale) {
  const int64_t token = b * n->tokens + t, each = n->y_heads / n->heads;
  const int64_t k_head = h / (n->heads / n->k_heads);
  hn_load_f64(r->k, call->input[K], (token * n->k_heads + k_head) * n->d_k, n->d_k);
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
    const int64_t q_head = head / (n->y_heads / n->q_heads); /* several states may be read by one query */
    hn_load_f64(r->q, call->input[Q], (token * n->q_heads + q_head) * n->d_k, n->d_k);
    for (int64_t m = 0; m < n->d_v; m++) {
      double sum = 0;
      for (int64_t i = 0; i < n->d_k; i++) sum += r->q[i] * r->s[i * n->d_v + m];
      r->y[m] = scale * sum;
    }
    hn_store_f64(call->output[0], (token * n->y_heads + head) * n->d_v, r->y, n->d_v);
  }
}

hone_status hn_linear_reference(hone_call *call, hone_error *error) {
  hn_linear_sizes n;
  const hone_tensor *const *in = call->input;
  const hone_status s = hn_linear_find(call->node, &in[Q]->desc, &in[K]->desc, &in[V]->desc, &n, error);
  if (s) return s;
  const double given = (double)hone_node_float(call->node, "scale", 0),
               scale = given != 0 ? given : 1 / sqrt((double)n.d_k);
  const int64_t state = n.d_k * n.d_v, slot = n.batch * n.heads * state;
  hone_tensor *present = call->n_outputs > 1 ? call->output[1] : NULL;
  double *all = hn_scratch(call, 3 * n.d_k + 2 * n.d_v + 1 + state, sizeof *all, error);
  if (!all) return HONE_ERROR_MEMORY;
  const row r = {all,
                 all + n.d_k,
                 all + 3 * n.d_k + 1,
                 all + 2 * n.d_k,
                 all + 3 * n.d_k + 1 + n.d_v,
                 all + 3 * n.d_k + 1 + 2 * n.d_v};
  /* Slots of a window that no token of this call reaches. */
  if (present && n.window)
    memset(present->data, 0, (size_t)hn_count(present) * hone_dtype_size(present->desc.dtype));
  for (int64_t line = 0; line < n.batch * n.heads; line++) {
    memset(r.s, 0, (size_t)state * sizeof *r.s);
    if (hn_call_has(call, PAST))
      hn_load_f64(r.s, in[PAST], (n.window ? n.window - 1 : 0) * slot + line * state, state);
    for (int64_t t = 0; t < n.tokens; t++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      step(call, &n, &r, line / n.heads, t, line % n.heads, scale);
      const int64_t w = n.window - n.tokens + t;
      if (present && w >= 0) hn_store_f64(present, w * slot + line * state, r.s, state);
    }
    if (present && (!n.window || !n.tokens))
      hn_store_f64(present, (n.window ? n.window - 1 : 0) * slot + line * state, r.s, state);
  }
  return HONE_OK;
}
