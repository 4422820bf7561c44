/* InstanceNormalization: normalises each plane of each sample, then scales and shifts by channel. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/elementwise.h"
#include "model/ops/normalize/moments.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  if (x->rank >= 0 && x->rank < 3) return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  for (uint32_t i = 1; i < 3; i++) {
    hone_status s = hn_infer_same_dtype(io, 0, i, error);
    if (!s) s = hn_infer_vector(io, i, x->rank > 0 ? x->dim[1] : HONE_DIM_UNKNOWN, error);
    if (s) return s;
  }
  return hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const double epsilon = hone_node_float(call->node, "epsilon", 1e-5f);
  const hone_dtype type = hn_stash(call->node, x->desc.dtype);
  int64_t channels = x->desc.dim[1], planes = x->desc.dim[0] * channels,
          n = hn_dims(&x->desc, 2, x->desc.rank);
  double *plane = hn_scratch(call, n, sizeof *plane, error);
  if (!plane) return HONE_ERROR_MEMORY;
  for (int64_t p = 0; p < planes; p++) {
    hn_load_f64(plane, x, p * n, n);
    double mean = hn_mean(plane, n, type), inverse = 1 / sqrt(hn_variance(plane, n, mean, type) + epsilon);
    double factor = hn_get_f64(call->input[1], p % channels) * inverse,
           shift = hn_get_f64(call->input[2], p % channels);
    for (int64_t i = 0; i < n; i++) plane[i] = (plane[i] - mean) * factor + shift;
    hn_store_f64(call->output[0], p * n, plane, n);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 7 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {{"epsilon", HONE_ATTR_FLOAT, false, 0, 0}, HN_CONSUMED_INPUTS, {0}};

HN_OP(instance_normalization) = {HN_OP_HEAD,
                                 .op_type = "InstanceNormalization",
                                 .since = 1,
                                 HN_INPUTS(3, 3),
                                 HN_OUTPUTS(1, 1),
                                 .types = HN_TYPES_FLOAT,
                                 .attrs = attrs,
                                 .infer = infer,
                                 .cost = cost,
                                 .reference = reference,
                                 .layouts = HONE_LAST_ALLOWED};
