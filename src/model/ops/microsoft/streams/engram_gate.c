/* EngramGate: a value that a memory gives, through a gate for each stream:
 *
 *   d = RMSNorm(key) RMSNorm(query) / sqrt(hidden),  gate = sigmoid(sign(d) sqrt(max(|d|, 1e-6)))
 *   y = gate value,  and RMSNorm(y) where it is asked for
 */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/normalize/moments.h"

enum { KEY, QUERY, VALUE, KEY_SCALE, QUERY_SCALE, OUT_SCALE };

static hone_status infer(const hone_infer *io, hone_error *error) {
  static const char *const names[] = {
      "key", "query", "value", "key_norm_scale", "query_norm_scale", "conv_norm_scale"};
  const hone_tensor_desc *k = io->input[KEY];
  if (k->rank >= 0 && k->rank != 4)
    return hn_op_bad(io->node, error, "key has rank %d, expected 4", (int)k->rank);
  const int64_t all[4] = {hn_dim(k, 0), hn_dim(k, 1), hn_dim(k, 2), hn_dim(k, 3)},
                one[3] = {all[0], all[1], all[3]};
  hone_status s = hn_infer_dims(io, QUERY, names[QUERY], 4, all, error);
  if (!s) s = hn_infer_dims(io, VALUE, names[VALUE], 3, one, error);
  for (uint32_t i = KEY_SCALE; i <= OUT_SCALE && !s; i++)
    s = hn_infer_dims(io, i, names[i], 2, all + 2, error);
  for (uint32_t i = QUERY; i <= OUT_SCALE && !s; i++)
    if (hn_has_input(io, i)) s = hn_infer_same_dtype(io, KEY, i, error);
  if (!s && io->n_outputs > 1 && io->output[1] && !hn_has_input(io, OUT_SCALE))
    s = hn_op_bad(io->node, error, "gated_value_normed needs conv_norm_scale");
  if (s) return s;
  for (uint32_t i = 0; i < 2; i++) hn_infer_set(io, i, k->dtype, 4, all);
  return HONE_OK;
}

/* x times its scale over its root mean square. */
static void normed(double *x, const double *scale, int64_t n, double epsilon) {
  const double inverse = 1 / sqrt(hn_mean_square(x, n, HONE_DTYPE_F32) + epsilon);
  for (int64_t i = 0; i < n; i++) x[i] *= inverse * scale[i];
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *key = call->input[KEY];
  const int64_t streams = key->desc.dim[2], n = key->desc.dim[3], rows = n ? hn_count(key) / n : 0;
  const double epsilon = (double)hone_node_float(call->node, "epsilon", 1e-5f);
  hone_tensor *after = call->n_outputs > 1 ? call->output[1] : NULL;
  const double *scale[3] = {NULL};
  for (int i = 0; i < 3; i++) {
    if (i == 2 && !after) break;
    scale[i] = hn_all_f64(call, call->input[KEY_SCALE + i], error);
    if (!scale[i]) return HONE_ERROR_MEMORY;
  }
  double *k = hn_scratch(call, 3 * n, sizeof *k, error), *q = k + n, *v = q + n;
  if (!k) return HONE_ERROR_MEMORY;
  for (int64_t row = 0; row < rows; row++) {
    const int64_t s = row % streams * n;
    double d = 0;
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(k, key, row * n, n);
    hn_load_f64(q, call->input[QUERY], row * n, n);
    hn_load_f64(v, call->input[VALUE], row / streams * n, n);
    normed(k, scale[0] + s, n, epsilon);
    normed(q, scale[1] + s, n, epsilon);
    for (int64_t i = 0; i < n; i++) d += k[i] * q[i];
    d /= sqrt((double)n);
    const double size = sqrt(fabs(d) > 1e-6 ? fabs(d)
                             : d != d       ? d
                                            : 1e-6),
                 x = d > 0   ? size
                     : d < 0 ? -size
                             : d;
    const double gate = 1 / (1 + exp(-x));
    for (int64_t i = 0; i < n; i++) v[i] *= gate;
    hn_store_f64(call->output[0], row * n, v, n);
    if (!after) continue;
    normed(v, scale[2] + s, n, epsilon);
    hn_store_f64(after, row * n, v, n);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  hn_cost_flops(c, 14 * hn_known_count(io->input[KEY]));
}

static const hone_attr_desc attrs[] = {{.name = "epsilon", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(engram_gate) = {HONE_DESC_HEAD(hone_op_desc),
                      .domain = "com.microsoft",
                      .op_type = "EngramGate",
                      .since = 1,
                      HN_INPUTS(5, 6),
                      HN_OUTPUTS(1, 2),
                      .types = HN_TYPES_FLOAT,
                      .attrs = attrs,
                      .infer = infer,
                      .cost = cost,
                      .reference = reference};
