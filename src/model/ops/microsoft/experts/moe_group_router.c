/* MoEGroupRouter: which experts a token goes to, as DeepSeek-V3 chooses them. s = sigmoid(logits); of the
 * groups of experts those stay whose best s + bias add up to most, of their experts the best; these get
 * log(s), the others a number that softmax makes 0 of. Or all of s + bias and s, where those are asked for.
 */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/common/convert.h"

enum { LOGITS, BIAS, PROJECTION };
enum { PROBS, SCORES, WEIGHTS };

typedef struct rule {
  int64_t experts, groups, groups_kept, best, kept; /* best: experts of a group that its score counts */
} rule;

static hone_status read(const hone_node *n, int64_t experts, rule *r, hone_error *error) {
  *r = (rule){experts, hone_node_int(n, "n_group", 1), hone_node_int(n, "topk_group", 1),
              hone_node_int(n, "group_topk", 2), hone_node_int(n, "top_k", 0)};
  if (r->groups < 1 || r->groups_kept < 1 || r->best < 1 || r->kept < 1 || r->groups_kept > r->groups ||
      (experts >= 0 && (experts % r->groups || r->kept > experts / r->groups * r->groups_kept)))
    return hn_op_bad(n, error, "%lld of %lld experts in %lld of %lld groups", (long long)r->kept,
                     (long long)experts, (long long)r->groups_kept, (long long)r->groups);
  return HONE_OK;
}

static bool wants(const hone_infer *io, uint32_t i) { return i < io->n_outputs && io->output[i]; }

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[LOGITS], *bias = io->input[BIAS];
  const bool full = wants(io, SCORES) || wants(io, WEIGHTS);
  if (full == wants(io, PROBS)) return hn_op_bad(io->node, error, "either probabilities or scores are made");
  if (hn_has_input(io, PROJECTION)) return hn_op_refuse(io->node, error, "projection_weight");
  hone_status s = hn_infer_dtype_in(io, BIAS, HONE_TYPES(HONE_DTYPE_F32), error);
  if (x->rank == 0) s = hn_op_bad(io->node, error, "logits are one number");
  const int64_t experts = x->rank > 0 ? x->dim[x->rank - 1] : hn_dim(bias, 0),
                tokens = x->rank > 0 ? hn_dims(x, 0, x->rank - 1) : HONE_DIM_UNKNOWN;
  rule r;
  if (!s) s = hn_infer_vector(io, BIAS, experts, error);
  if (!s) s = read(io->node, experts, &r, error);
  if (s) return s;
  const int64_t dim[2] = {tokens < 0 ? HONE_DIM_UNKNOWN : tokens, experts};
  if (wants(io, PROBS)) hn_infer_set(io, PROBS, x->dtype, 2, dim);
  for (uint32_t i = SCORES; i <= WEIGHTS; i++)
    if (wants(io, i)) hn_infer_set(io, i, HONE_DTYPE_F32, 2, dim);
  return HONE_OK;
}

/* The largest of those that are not taken, of equal ones the first; -1: what is left is no number. */
static int64_t largest(const double *v, const bool *taken, int64_t from, int64_t to) {
  int64_t at = -1;
  for (int64_t i = from; i < to; i++)
    if (!taken[i] && (at < 0 ? v[i] == v[i] : v[i] > v[at])) at = i;
  return at;
}

/* taken: experts that may not be chosen, because their groups are not. */
static void keep_groups(const rule *r, const double *biased, double *score, bool *lost, bool *taken) {
  const int64_t size = r->experts / r->groups;
  for (int64_t g = 0; g < r->groups; g++) {
    score[g] = 0, lost[g] = false;
    for (int64_t i = g * size; i < (g + 1) * size; i++) taken[i] = false;
    for (int64_t i = 0; i < hn_min(r->best, size); i++) {
      const int64_t at = largest(biased, taken, g * size, (g + 1) * size);
      score[g] += at < 0 ? NAN : biased[at];
      if (at >= 0) taken[at] = true;
    }
  }
  for (int64_t i = 0; i < r->experts; i++) taken[i] = true;
  for (int64_t k = 0; k < r->groups_kept; k++) {
    const int64_t g = largest(score, lost, 0, r->groups);
    if (g < 0) return;
    lost[g] = true;
    for (int64_t i = g * size; i < (g + 1) * size; i++) taken[i] = false;
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[LOGITS];
  hone_tensor *out[3];
  for (uint32_t i = PROBS; i <= WEIGHTS; i++) out[i] = i < call->n_outputs ? call->output[i] : NULL;
  const float *bias = call->input[BIAS]->data;
  const int64_t n = x->desc.dim[x->desc.rank - 1], tokens = n ? hn_count(x) / n : 0;
  const double other = (double)hone_node_float(call->node, "router_sentinel", -10000);
  rule r;
  hone_status s = read(call->node, n, &r, error);
  if (s) return s;
  double *at = hn_scratch(call, 4 * n, sizeof *at, error);
  bool *taken = at ? hn_scratch(call, 2 * n, sizeof *taken, error) : NULL;
  if (!taken) return HONE_ERROR_MEMORY;
  double *sigmoid = at + n, *biased = at + 2 * n, *score = at + 3 * n;
  for (int64_t t = 0; t < tokens; t++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(at, x, t * n, n);
    for (int64_t i = 0; i < n; i++) {
      sigmoid[i] = 1 / (1 + exp(-at[i]));
      biased[i] = sigmoid[i] + (double)bias[i];
    }
    if (out[SCORES]) hn_store_f64(out[SCORES], t * n, biased, n);
    if (out[WEIGHTS]) hn_store_f64(out[WEIGHTS], t * n, sigmoid, n);
    if (!out[PROBS]) continue;
    keep_groups(&r, biased, score, taken + n, taken);
    for (int64_t i = 0; i < n; i++) at[i] = other;
    for (int64_t k = 0; k < r.kept; k++) {
      const int64_t e = largest(biased, taken, 0, n);
      if (e < 0) break;
      taken[e] = true;
      at[e] = log(fmax(sigmoid[e], 1e-20));
    }
    hn_store_f64(out[PROBS], t * n, at, n);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "top_k", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "n_group", .type = HONE_ATTR_INT},
                                       {.name = "topk_group", .type = HONE_ATTR_INT},
                                       {.name = "group_topk", .type = HONE_ATTR_INT},
                                       {.name = "router_sentinel", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(moe_group_router) = {HONE_DESC_HEAD(hone_op_desc),
                           .domain = "com.microsoft",
                           .op_type = "MoEGroupRouter",
                           .since = 1,
                           HN_INPUTS(2, 3),
                           HN_OUTPUTS(1, 3),
                           .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F16) |
                                    HONE_TYPES(HONE_DTYPE_BF16),
                           .attrs = attrs,
                           .infer = infer,
                           .reference = reference};
