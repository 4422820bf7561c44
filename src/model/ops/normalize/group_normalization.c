/* GroupNormalization: normalises groups of channels of each sample. Scale and bias are given by group in
 * opset 18 and by channel from opset 21 on. */
#include "model/ops/common/bulk.h"
#include "model/ops/normalize/moments.h"

static bool by_group(const hone_node *node) { return hone_node_opset(node) < 21; }

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t groups = hone_node_int(io->node, "num_groups", 0),
          channels = x->rank > 1 ? x->dim[1] : HONE_DIM_UNKNOWN;
  int64_t stash = hone_node_int(io->node, "stash_type", HONE_DTYPE_F32);
  if (stash != HONE_DTYPE_F32 && stash != HONE_DTYPE_F64 && stash != HONE_DTYPE_F16 &&
      stash != HONE_DTYPE_BF16)
    return hn_op_bad(io->node, error, "stash_type is %lld", (long long)stash);
  if (x->rank >= 0 && x->rank < 2) return hn_op_bad(io->node, error, "the input has rank %d", (int)x->rank);
  if (groups < 1 || (channels >= 0 && channels % groups))
    return hn_op_bad(io->node, error, "%lld channels do not divide into %lld groups", (long long)channels,
                     (long long)groups);
  for (uint32_t i = 1; i < 3; i++) {
    hone_status s = hn_infer_same_dtype(io, 0, i, error);
    if (!s) s = hn_infer_vector(io, i, by_group(io->node) ? groups : channels, error);
    if (s) return s;
  }
  return hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const double epsilon = hone_node_float(call->node, "epsilon", 1e-5f);
  const hone_dtype type = hn_stash(call->node, x->desc.dtype);
  int64_t groups = hone_node_int(call->node, "num_groups", 1), each = x->desc.dim[1] / groups;
  int64_t n = hn_dims(&x->desc, 2, x->desc.rank), planes = x->desc.dim[0] * groups;
  double *data = hn_scratch(call, each * n, sizeof *data, error);
  if (!data) return HONE_ERROR_MEMORY;
  for (int64_t p = 0; p < planes; p++) {
    hn_load_f64(data, x, p * each * n, each * n);
    double mean = hn_mean(data, each * n, type);
    double inverse = 1 / sqrt(hn_variance(data, each * n, mean, type) + epsilon);
    for (int64_t c = 0; c < each; c++) {
      int64_t k = by_group(call->node) ? p % groups : p % groups * each + c;
      double factor = hn_get_f64(call->input[1], k) * inverse, shift = hn_get_f64(call->input[2], k);
      for (int64_t i = 0; i < n; i++) data[c * n + i] = (data[c * n + i] - mean) * factor + shift;
    }
    hn_store_f64(call->output[0], p * each * n, data, each * n);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 7 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {{"epsilon", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"num_groups", HONE_ATTR_INT, true, 0, 0},
                                       {"stash_type", HONE_ATTR_INT, false, 21, 0},
                                       {0}};

HN_OP(group_normalization) = {
    HN_OP_HEAD,       .op_type = "GroupNormalization", .since = 18,    HN_INPUTS(3, 3),
    HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT,         .attrs = attrs, .infer = infer,
    .cost = cost,     .reference = reference};
