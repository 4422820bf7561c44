/* GatedDeltaNet: see the header. */
#include "model/ops/microsoft/attention/gated_delta_net.h"

#include <string.h>

#include "model/ops/microsoft/common/inner.h"

enum { OPERANDS = HN_GDN_DT + 1 };

static hone_status find_rule(const hone_node *node, hn_gdn *n, hone_error *error) {
  const char *rule = hone_node_string(node, "update_rule", "gated_delta"),
             *gate = hone_node_string(node, "gate_activation", "none"),
             *beta = hone_node_string(node, "beta_activation", "none");
  n->gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
  n->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
  if (!n->gated && !n->delta && strcmp(rule, "linear") != 0)
    return hn_op_bad(node, error, "update_rule is \"%s\", expected linear, gated, delta or gated_delta",
                     rule);
  if (strcmp(gate, "softplus") == 0 || strcmp(gate, "qwen") == 0)
    n->gate = HN_GDN_SOFTPLUS;
  else if (strcmp(gate, "sigmoid") == 0 || strcmp(gate, "kda") == 0)
    n->gate = HN_GDN_SIGMOID;
  else if (strcmp(gate, "none") != 0)
    return hn_op_bad(node, error, "gate_activation is \"%s\", expected none, softplus or sigmoid", gate);
  n->beta_sigmoid = strcmp(beta, "sigmoid") == 0;
  if (!n->beta_sigmoid && strcmp(beta, "none") != 0)
    return hn_op_bad(node, error, "beta_activation is \"%s\", expected none or sigmoid", beta);
  n->norms = hone_node_int(node, "qk_l2_norm", 0) != 0;
  n->scale = (double)hone_node_float(node, "scale", 0);
  n->bound = (double)hone_node_float(node, "gate_lower_bound", -5);
  if (hone_node_int(node, "state_update_capacity", 0))
    return hn_op_refuse(node, error, "state_update_capacity is %lld, only 0 is implemented",
                        (long long)hone_node_int(node, "state_update_capacity", 0));
  return HONE_OK;
}

/* d has the rank `rank`; NULL and what is not known pass. */
static hone_status check_rank(const hone_node *node, const char *name, const hone_tensor_desc *d,
                              int32_t rank, hone_error *error) {
  if (!d || d->rank < 0 || d->rank == rank) return HONE_OK;
  return hn_op_bad(node, error, "%s has rank %d, expected %d", name, (int)d->rank, (int)rank);
}

/* *number becomes what d says it is, unless it is known already: then d must say the same. */
static hone_status settle(const hone_node *node, const char *name, const hone_tensor_desc *d, int32_t i,
                          int64_t *number, hone_error *error) {
  const int64_t got = hn_dim(d, i);
  if (got < 0) return HONE_OK;
  if (*number >= 0 && *number != got)
    return hn_op_bad(node, error, "dimension %d of %s is %lld, expected %lld", (int)i, name, (long long)got,
                     (long long)*number);
  *number = got;
  return HONE_OK;
}

/* HONE_DIM_UNKNOWN where a factor is, or no number is so large. */
static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? HONE_DIM_UNKNOWN : product;
}

static int64_t tokens_of(const hone_tensor_desc *d, int32_t lead) {
  return times(hn_dim(d, 0), lead == 2 ? hn_dim(d, 1) : 1);
}

/* All three in one operand: only the states say how it is divided. */
static hone_status find_packed(const hone_node *node, const hone_tensor_desc *q, hn_gdn *n,
                               hone_error *error) {
  n->width = n->lead > 0 ? hn_dim(q, n->lead) : HONE_DIM_UNKNOWN;
  const int64_t values = times(n->heads, n->d_v);
  if (n->width < 0 || values < 0 || n->d_k < 0) return HONE_OK;
  const int64_t keys = n->width - values;
  if (n->d_k < 1 || keys < 0 || keys % n->d_k || keys / n->d_k % 2)
    return hn_op_bad(node, error,
                     "a token of query has %lld numbers, %lld of them values: no two sets of heads of %lld",
                     (long long)n->width, (long long)values, (long long)n->d_k);
  n->k_heads = keys / n->d_k / 2;
  return HONE_OK;
}

static hone_status find_apart(const hone_node *node, const hone_tensor_desc *const *in, hn_gdn *n,
                              hone_error *error) {
  static const char *const names[] = {"query", "key", "value"};
  hone_status s = HONE_OK;
  for (int i = HN_GDN_Q; i <= HN_GDN_V && !s; i++) {
    int64_t tokens = tokens_of(in[i], n->lead);
    s = check_rank(node, names[i], in[i], n->lead + 2, error);
    if (!s) s = settle(node, names[i], in[i], n->lead, i == HN_GDN_V ? &n->heads : &n->k_heads, error);
    if (!s) s = settle(node, names[i], in[i], n->lead + 1, i == HN_GDN_V ? &n->d_v : &n->d_k, error);
    if (!s && tokens >= 0 && n->tokens >= 0 && tokens != n->tokens)
      s = hn_op_bad(node, error, "%s has %lld tokens, query %lld", names[i], (long long)tokens,
                    (long long)n->tokens);
  }
  return s;
}

/* decay and beta: a number for each token and head, of decay also one for each of the d_k. */
static hone_status check_gate(const hone_node *node, const char *name, const hone_tensor_desc *d, bool wanted,
                              const hn_gdn *n, bool per_key, hone_error *error) {
  if (!d != !wanted)
    return hn_op_bad(node, error, "%s is %s with update_rule \"%s\"", name, wanted ? "left out" : "given",
                     hone_node_string(node, "update_rule", "gated_delta"));
  if (!d || d->rank < 0 || n->lead < 0) return HONE_OK;
  const bool fits = d->rank == n->lead + 1 || (per_key && d->rank == n->lead + 2);
  const int64_t tokens = tokens_of(d, n->lead);
  if (!fits || hn_dims_differ(hn_dim(d, n->lead), n->heads) || hn_dims_differ(tokens, n->tokens) ||
      (d->rank == n->lead + 2 && hn_dims_differ(hn_dim(d, n->lead + 1), n->d_k))) {
    char text[96];
    return hn_op_bad(node, error, "%s is %s, expected a number for each of %lld tokens and %lld heads%s",
                     name, hone_desc_format(d, text, sizeof text), (long long)n->tokens, (long long)n->heads,
                     per_key ? ", or one for each number of their keys" : "");
  }
  return HONE_OK;
}

static hone_status check_activation(const hone_node *node, const hone_tensor_desc *const *in, const hn_gdn *n,
                                    hone_error *error) {
  const hone_tensor_desc *a = in[HN_GDN_A], *dt = in[HN_GDN_DT];
  if (n->gate == HN_GDN_PLAIN || !n->gated) return HONE_OK;
  if (!a || !dt) return hn_op_bad(node, error, "gate_activation needs a_log and dt_bias");
  const int64_t biases = hone_desc_count(dt), one = n->heads, all = times(n->heads, n->d_k);
  const bool per_key = in[HN_GDN_DECAY] && in[HN_GDN_DECAY]->rank == n->lead + 2;
  if (hn_dims_differ(hone_desc_count(a), n->heads))
    return hn_op_bad(node, error, "a_log has %lld numbers, expected %lld", (long long)hone_desc_count(a),
                     (long long)n->heads);
  if (hn_dims_differ(biases, one) && (!per_key || hn_dims_differ(biases, all)))
    return hn_op_bad(node, error, "dt_bias has %lld numbers, expected %lld", (long long)biases,
                     (long long)(per_key ? all : one));
  return HONE_OK;
}

hone_status hn_gdn_find(const hone_node *node, const hone_tensor_desc *const *in, hn_gdn *out,
                        hone_error *error) {
  const hone_tensor_desc *q = in[HN_GDN_Q], *state = in[HN_GDN_STATE], *cu = in[HN_GDN_CU];
  const bool packed = !in[HN_GDN_K] && !in[HN_GDN_V];
  hn_gdn *n = out;
  memset(n, 0, sizeof *n); /* with what lies between members: plans keep it */
  n->tokens = n->batch = n->k_heads = n->heads = n->d_k = n->d_v = HONE_DIM_UNKNOWN;
  n->lead = HONE_DIM_UNKNOWN;
  hone_status s = find_rule(node, n, error);
  if (s) return s;
  if (!in[HN_GDN_K] != !in[HN_GDN_V]) return hn_op_bad(node, error, "key and value go together");
  if (packed && !state) return hn_op_bad(node, error, "queries, keys and values in one need initial_state");
  if (q->rank >= 0) {
    n->lead = q->rank - (packed ? 1 : 2);
    if (n->lead < 1 || n->lead > 2)
      return hn_op_bad(node, error, "query has rank %d, expected %s", (int)q->rank,
                       packed ? "2 or 3" : "3 or 4");
    n->tokens = tokens_of(q, n->lead);
  }
  if (cu && n->lead == 2)
    return hn_op_bad(node, error, "cu_seqlens is for tokens in one row, query has a batch");
  if (!cu && !state && n->lead == 1)
    return hn_op_bad(node, error,
                     "one of cu_seqlens and initial_state must say how many sequences there are");
  if (n->lead == 2) n->batch = hn_dim(q, 0);
  if (cu && hn_dim(cu, 0) >= 0) n->batch = hn_dim(cu, 0) - 1;
  s = check_rank(node, "cu_seqlens", cu, 1, error);
  if (!s && cu && hn_dim(cu, 0) == 0) s = hn_op_bad(node, error, "cu_seqlens is empty");
  if (!s) s = check_rank(node, "initial_state", state, 4, error);
  int64_t *const sizes[] = {&n->batch, &n->heads, &n->d_v, &n->d_k};
  for (int32_t i = 0; i < 4 && !s; i++) s = settle(node, "initial_state", state, i, sizes[i], error);
  if (!s && n->lead > 0) s = packed ? find_packed(node, q, n, error) : find_apart(node, in, n, error);
  if (s) return s;
  if (n->k_heads >= 0 && n->heads >= 0 && (n->k_heads < 1 || n->heads < 1 || n->heads % n->k_heads))
    return hn_op_bad(node, error, "%lld heads of values are no multiple of %lld of keys", (long long)n->heads,
                     (long long)n->k_heads);
  if (!cu && n->tokens >= 0 && n->batch >= 0 && (n->batch ? n->tokens % n->batch : n->tokens) != 0)
    return hn_op_bad(node, error, "%lld tokens are no %lld sequences of one length", (long long)n->tokens,
                     (long long)n->batch);
  s = check_gate(node, "decay", in[HN_GDN_DECAY], n->gated, n, true, error);
  if (!s) s = check_gate(node, "beta", in[HN_GDN_BETA], n->delta, n, false, error);
  return s ? s : check_activation(node, in, n, error);
}

hone_status hn_gdn_check_starts(const hone_node *node, const hn_gdn *n, const int32_t *cu,
                                hone_error *error) {
  if (!cu) return HONE_OK;
  for (int64_t i = 0; i <= n->batch; i++)
    if (cu[i] < (i ? cu[i - 1] : 0) || cu[i] > n->tokens || (!i && cu[i]) ||
        (i == n->batch && cu[i] != n->tokens))
      return hn_op_bad(node, error, "cu_seqlens[%lld] is %d: it must rise from 0 to %lld", (long long)i,
                       (int)cu[i], (long long)n->tokens);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *in[OPERANDS];
  hn_gdn n;
  for (uint32_t i = 0; i < OPERANDS; i++) in[i] = hn_has_input(io, i) ? io->input[i] : NULL;
  hone_status s = hn_gdn_find(io->node, in, &n, error);
  if (!s && in[HN_GDN_K]) s = hn_infer_same_dtype(io, HN_GDN_Q, HN_GDN_K, error);
  if (!s && in[HN_GDN_V]) s = hn_infer_same_dtype(io, HN_GDN_Q, HN_GDN_V, error);
  if (!s) s = hn_infer_dtype_in(io, HN_GDN_CU, HONE_TYPES(HONE_DTYPE_I32), error);
  for (uint32_t i = HN_GDN_DECAY; i < OPERANDS && !s; i++)
    s = hn_infer_dtype_in(io, i, HN_TYPES_FLOAT, error);
  if (s) return s;
  const int64_t batch = n.batch;
  int64_t y[4];
  for (int32_t i = 0; i < n.lead; i++) y[i] = hn_dim(in[HN_GDN_Q], i);
  if (n.lead > 0) y[n.lead] = n.heads, y[n.lead + 1] = n.d_v;
  hn_infer_set(io, HN_GDN_Y, in[HN_GDN_Q]->dtype, n.lead > 0 ? n.lead + 2 : HONE_DIM_UNKNOWN, y);
  hn_infer_set(io, HN_GDN_FINAL, in[HN_GDN_STATE] ? in[HN_GDN_STATE]->dtype : HONE_DTYPE_F32, 4,
               (const int64_t[]){batch, n.heads, n.d_v, n.d_k});
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  const hone_tensor_desc *in[OPERANDS];
  hn_gdn n;
  for (uint32_t i = 0; i < OPERANDS; i++) in[i] = hn_has_input(io, i) ? io->input[i] : NULL;
  if (hn_gdn_find(io->node, in, &n, NULL) != HONE_OK) return;
  hn_cost_macs(c, (n.delta ? 3.0 : 2.0) * (double)hn_max(n.tokens, 0) * (double)hn_max(n.heads, 0) *
                      (double)hn_max(n.d_k, 0) * (double)hn_max(n.d_v, 0));
}

typedef struct row {
  double *q, *k, *decay, *v, *y, *s; /* d_k, d_k, d_k, d_v, d_v, d_v x d_k */
} row;

static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void to_length_one(double *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
  for (int64_t i = 0; i < n; i++) x[i] /= sqrt(sum + HN_GDN_NORM_EPS);
}

/* What each number of a key keeps of its row of the state. */
static void load_decay(const hone_call *call, const hn_gdn *n, const row *r, int64_t token, int64_t h) {
  const hone_tensor *g = call->input[HN_GDN_DECAY], *dt = call->input[HN_GDN_DT];
  const bool per_key = g->desc.rank == n->lead + 2, biases = n->gate && hn_count(dt) != n->heads;
  for (int64_t i = 0; i < n->d_k; i++) {
    double x = hn_get_f64(g, per_key ? (token * n->heads + h) * n->d_k + i : token * n->heads + h);
    if (n->gate) {
      const double a = exp(hn_get_f64(call->input[HN_GDN_A], h));
      x += hn_get_f64(dt, biases ? h * n->d_k + i : h);
      x = n->gate == HN_GDN_SOFTPLUS ? -a * softplus(x) : n->bound * sigmoid(a * x);
    }
    r->decay[i] = exp(x);
  }
}

static void load_token(const hone_call *call, const hn_gdn *n, const row *r, int64_t token, int64_t h) {
  const int64_t k_head = h / (n->heads / n->k_heads), keys = n->k_heads * n->d_k;
  if (n->width) {
    const int64_t at = token * n->width;
    hn_load_f64(r->q, call->input[HN_GDN_Q], at + k_head * n->d_k, n->d_k);
    hn_load_f64(r->k, call->input[HN_GDN_Q], at + keys + k_head * n->d_k, n->d_k);
    hn_load_f64(r->v, call->input[HN_GDN_Q], at + 2 * keys + h * n->d_v, n->d_v);
  } else {
    hn_load_f64(r->q, call->input[HN_GDN_Q], token * keys + k_head * n->d_k, n->d_k);
    hn_load_f64(r->k, call->input[HN_GDN_K], token * keys + k_head * n->d_k, n->d_k);
    hn_load_f64(r->v, call->input[HN_GDN_V], (token * n->heads + h) * n->d_v, n->d_v);
  }
  if (!n->norms) return;
  to_length_one(r->q, n->d_k);
  to_length_one(r->k, n->d_k);
}

static void step(hone_call *call, const hn_gdn *n, const row *r, int64_t token, int64_t h, double scale) {
  double rate = 1;
  load_token(call, n, r, token, h);
  if (n->gated) load_decay(call, n, r, token, h);
  if (n->delta) rate = hn_get_f64(call->input[HN_GDN_BETA], token * n->heads + h);
  if (n->delta && n->beta_sigmoid) rate = sigmoid(rate);
  for (int64_t m = 0; m < n->d_v; m++) {
    double *s = r->s + m * n->d_k, kept = 0, sum = 0;
    for (int64_t i = 0; i < n->d_k && n->gated; i++) s[i] *= r->decay[i];
    for (int64_t i = 0; i < n->d_k && n->delta; i++) kept += s[i] * r->k[i];
    const double v = n->delta ? rate * (r->v[m] - kept) : r->v[m];
    for (int64_t i = 0; i < n->d_k; i++) s[i] += r->k[i] * v;
    for (int64_t i = 0; i < n->d_k; i++) sum += s[i] * r->q[i];
    r->y[m] = scale * sum;
  }
  hn_store_f64(call->output[HN_GDN_Y], (token * n->heads + h) * n->d_v, r->y, n->d_v);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor_desc *in[OPERANDS];
  hn_gdn n;
  for (uint32_t i = 0; i < OPERANDS; i++) in[i] = hn_call_has(call, i) ? &call->input[i]->desc : NULL;
  hone_status s = hn_gdn_find(call->node, in, &n, error);
  const int32_t *cu = in[HN_GDN_CU] ? call->input[HN_GDN_CU]->data : NULL;
  if (!s) s = hn_gdn_check_starts(call->node, &n, cu, error);
  if (s) return s;
  const int64_t state = n.d_k * n.d_v;
  const double scale = n.scale != 0 ? n.scale : 1 / sqrt((double)n.d_k);
  double *all = hn_scratch(call, 3 * n.d_k + 2 * n.d_v + state, sizeof *all, error);
  if (!all) return HONE_ERROR_MEMORY;
  const row r = {all,
                 all + n.d_k,
                 all + 2 * n.d_k,
                 all + 3 * n.d_k,
                 all + 3 * n.d_k + n.d_v,
                 all + 3 * n.d_k + 2 * n.d_v};
  for (int64_t line = 0; line < n.batch * n.heads; line++) {
    const int64_t i = line / n.heads, end = hn_gdn_start(&n, cu, i + 1);
    memset(r.s, 0, (size_t)state * sizeof *r.s);
    if (in[HN_GDN_STATE]) hn_load_f64(r.s, call->input[HN_GDN_STATE], line * state, state);
    for (int64_t t = hn_gdn_start(&n, cu, i); t < end; t++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      step(call, &n, &r, t, line % n.heads, scale);
    }
    if (call->n_outputs > HN_GDN_FINAL && call->output[HN_GDN_FINAL])
      hn_store_f64(call->output[HN_GDN_FINAL], line * state, r.s, state);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "beta_activation", .type = HONE_ATTR_STRING},
                                       {.name = "chunk_size", .type = HONE_ATTR_INT}, /* a hint */
                                       {.name = "gate_activation", .type = HONE_ATTR_STRING},
                                       {.name = "gate_lower_bound", .type = HONE_ATTR_FLOAT},
                                       {.name = "qk_l2_norm", .type = HONE_ATTR_INT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "state_update_capacity", .type = HONE_ATTR_INT},
                                       {.name = "update_rule", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(gated_delta_net) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "GatedDeltaNet",
                          .since = 1,
                          HN_INPUTS(1, 9),
                          HN_OUTPUTS(1, 2),
                          .types = HN_TYPES_FLOAT,
                          .attrs = attrs,
                          .infer = infer,
                          .cost = cost,
                          .reference = reference};
