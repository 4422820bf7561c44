/* BranchwiseRMSNorm: x / sqrt(mean of the squares of its branch + epsilon), times a scale. Branches are rows
 * of the last dimension, or its num_branches equal parts. Scales: one a number of a branch, or one each. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

/* Branches and their length in the last dimensions of x; -1: not known. */
static hone_status parts(const hone_node *node, const hone_tensor_desc *x, int64_t *c, int64_t *h,
                         hone_error *error) {
  const int64_t n = hone_node_int(node, "num_branches", 0);
  const int32_t r = x->rank;
  if (n < 0 || r < (n ? 1 : 2))
    return hn_op_bad(node, error, "%lld branches of an input of rank %d", (long long)n, (int)r);
  *c = n ? n : x->dim[r - 2];
  *h = !n ? x->dim[r - 1] : x->dim[r - 1] < 0 ? -1 : x->dim[r - 1] / n;
  if (n && x->dim[r - 1] >= 0 && x->dim[r - 1] % n)
    return hn_op_bad(node, error, "%lld numbers are not %lld branches", (long long)x->dim[r - 1],
                     (long long)n);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t c, h;
  hone_status s = hn_infer_dtype_in(io, 1, HN_TYPES_FLOAT, error);
  if (!s && x->rank >= 0) s = parts(io->node, x, &c, &h, error);
  if (!s && x->rank >= 0 && hn_has_input(io, 1) && hone_desc_known(io->input[1]) && c >= 0 && h >= 0) {
    const hone_tensor_desc *scale = io->input[1];
    const bool each = scale->rank == 2 && scale->dim[0] == c && scale->dim[1] == h;
    if (!each && !(scale->rank == 1 && (scale->dim[0] == h || scale->dim[0] == c * h)))
      s = hn_op_bad(io->node, error, "the scale fits neither %lld numbers nor %lld branches of them",
                    (long long)h, (long long)c);
  }
  return s ? s : hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0], *scale = hn_call_has(call, 1) ? call->input[1] : NULL;
  const double epsilon = hone_node_float(call->node, "epsilon", 1e-5f);
  int64_t c, h;
  hone_status s = parts(call->node, &x->desc, &c, &h, error);
  double *v = s ? NULL : hn_scratch(call, h, 2 * sizeof *v, error), *by = v ? v + h : NULL;
  if (!v) return s ? s : HONE_ERROR_MEMORY;
  for (int64_t at = 0, n = hn_count(x), row = 0; at < n; at += h, row++) {
    s = row % 256 == 0 ? hn_call_check(call, error) : HONE_OK;
    if (s) return s;
    double sum = 0;
    hn_load_f64(v, x, at, h);
    for (int64_t i = 0; i < h; i++) sum += v[i] * v[i];
    const double factor = 1 / sqrt(sum / (double)h + epsilon);
    if (scale) hn_load_f64(by, scale, hn_count(scale) == h ? 0 : row % c * h, h);
    for (int64_t i = 0; i < h; i++) v[i] *= scale ? factor * by[i] : factor;
    hn_store_f64(call->output[0], at, v, h);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) { hn_cost_flops(c, 4 * hn_known_count(io->output[0])); }

static const hone_attr_desc attrs[] = {
    {.name = "num_branches", .type = HONE_ATTR_INT}, {.name = "epsilon", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(branchwise_rms_norm) = {HONE_DESC_HEAD(hone_op_desc),
                              .domain = "com.microsoft",
                              .op_type = "BranchwiseRMSNorm",
                              .since = 1,
                              HN_INPUTS(1, 2),
                              HN_OUTPUTS(1, 1),
                              .types = HN_TYPES_FLOAT,
                              .attrs = attrs,
                              .infer = infer,
                              .cost = cost,
                              .reference = reference};
