/* GroupNorm of com.microsoft. */
#include "model/ops/microsoft/norms/group_norm.h"

#include "model/ops/normalize/moments.h"

enum { X, GAMMA, BETA };

hone_status hn_group_norm_of(const hone_node *node, hn_group_norm *out, hone_error *error) {
  const int64_t act = hone_node_int(node, "activation", 0);
  *out = (hn_group_norm){hone_node_int(node, "groups", 0), hone_node_int(node, "channels_last", 1) != 0,
                         act == 1, hone_node_float(node, "epsilon", 1e-5f)};
  if (out->groups < 1) return hn_op_bad(node, error, "groups is %lld", (long long)out->groups);
  if (act != 0 && act != 1) return hn_op_bad(node, error, "activation is %lld", (long long)act);
  return HONE_OK;
}

hone_status hn_group_norm_infer(const hone_infer *io, int64_t *channels, hone_error *error) {
  const hone_tensor_desc *x = io->input[X];
  hn_group_norm g;
  hone_status s = hn_group_norm_of(io->node, &g, error);
  if (!s && x->rank >= 0 && x->rank < 3)
    s = hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  if (s) return s;
  *channels = x->rank > 0 ? x->dim[g.last ? x->rank - 1 : 1] : HONE_DIM_UNKNOWN;
  if (*channels >= 0 && *channels % g.groups)
    return hn_op_bad(io->node, error, "%lld channels do not divide into %lld groups", (long long)*channels,
                     (long long)g.groups);
  for (uint32_t i = GAMMA; i <= BETA && !s; i++) {
    s = hn_infer_vector(io, i, *channels, error);
    if (!s) s = hn_infer_dtype_in(io, i, HN_TYPES_FLOAT, error);
  }
  if (!s) s = hn_infer_same_dtype(io, GAMMA, BETA, error);
  if (!s) hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  return s;
}

void hn_group_norm_cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 8 * hn_known_count(io->input[X]));
}

hone_status hn_group_norm_run(hone_call *call, const hone_tensor *x, hone_error *error) {
  const hone_tensor_desc *d = &x->desc;
  hn_group_norm g;
  hone_status s = hn_group_norm_of(call->node, &g, error);
  if (s) return s;
  const int32_t axis = g.last ? d->rank - 1 : 1;
  const int64_t channels = d->dim[axis], each = channels / g.groups,
                pixels = channels ? hn_dims(d, 1, d->rank) / channels : 0, n = each * pixels;
  const double *gamma = hn_all_f64(call, call->input[GAMMA], error),
               *beta = gamma ? hn_all_f64(call, call->input[BETA], error) : NULL;
  double *data = beta ? hn_scratch(call, n, sizeof *data, error) : NULL;
  if (!data) return HONE_ERROR_MEMORY;
  /* A group as runs: of its channels at each pixel, or all of it. */
  const int64_t runs = g.last ? pixels : 1, run = g.last ? each : n, apart = g.last ? channels : n;
  for (int64_t p = 0; p < d->dim[0] * g.groups; p++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    const int64_t group = p % g.groups, at = p / g.groups * channels * pixels + group * (g.last ? each : n);
    for (int64_t r = 0; r < runs; r++) hn_load_f64(data + r * run, x, at + r * apart, run);
    const double mean = hn_mean(data, n, HONE_DTYPE_F32),
                 inverse = 1 / sqrt(hn_variance(data, n, mean, HONE_DTYPE_F32) + (double)g.epsilon);
    for (int64_t i = 0; i < n; i++) {
      const int64_t c = group * each + (g.last ? i % each : i / pixels);
      const double v = (data[i] - mean) * inverse * gamma[c] + beta[c];
      data[i] = g.silu ? v / (1 + exp(-v)) : v;
    }
    for (int64_t r = 0; r < runs; r++) hn_store_f64(call->output[0], at + r * apart, data + r * run, run);
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t channels;
  return hn_group_norm_infer(io, &channels, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_group_norm_run(call, call->input[X], error);
}

static const hone_attr_desc attrs[] = {HN_GROUP_NORM_ATTRS, {0}};

HN_OP(group_norm) = {HONE_DESC_HEAD(hone_op_desc),
                     .domain = "com.microsoft",
                     .op_type = "GroupNorm",
                     .since = 1,
                     HN_INPUTS(3, 3),
                     HN_OUTPUTS(1, 1),
                     .types = HN_TYPES_FLOAT,
                     .attrs = attrs,
                     .infer = infer,
                     .cost = hn_group_norm_cost,
                     .reference = reference};
