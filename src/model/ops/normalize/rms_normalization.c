/* RMSNormalization (opset 23): x / sqrt(mean(x^2) + epsilon) over the dimensions from `axis` on, times scale.
 */
#include "model/ops/common/bulk.h"
#include "model/ops/normalize/moments.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int32_t axis;
  hone_status s = hn_infer_dtype_in(io, 1, HN_TYPES_FLOAT, error);
  if (s) return s;
  if (x->rank == 0) return hn_op_bad(io->node, error, "the input has rank 0");
  if (x->rank > 0 && (s = hn_axis(hone_node_int(io->node, "axis", -1), x->rank, &axis, error))) return s;
  hone_tensor_desc full = *x;
  if (x->rank > 0 && (s = hn_broadcast_dims(&full, io->input[1], error))) return s;
  for (int32_t d = 0; d < full.rank; d++)
    if (full.rank != x->rank || (full.dim[d] >= 0 && x->dim[d] >= 0 && full.dim[d] != x->dim[d]))
      return hn_op_bad(io->node, error, "scale does not broadcast to the input");
  hn_infer_set(io, 0, io->input[1]->dtype, x->rank, x->dim); /* the result has scale's dtype */
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const double epsilon = hone_node_float(call->node, "epsilon", 1e-5f);
  const hone_dtype type = hn_stash(call->node, x->desc.dtype);
  int32_t axis = 0, rank = x->desc.rank;
  hone_status s = hn_axis(hone_node_int(call->node, "axis", -1), rank, &axis, error);
  if (s) return s;
  int64_t outer = hn_dims(&x->desc, 0, axis), n = hn_dims(&x->desc, axis, rank);
  double *row = hn_scratch(call, n, sizeof *row, error);
  if (!row) return HONE_ERROR_MEMORY;
  hn_iter it;
  hn_iter_init(&it, &x->desc, &call->input[1], 1);
  for (int64_t o = 0; o < outer; o++) {
    hn_load_f64(row, x, o * n, n);
    double inverse = 1 / sqrt(hn_mean_square(row, n, type) + epsilon);
    for (int64_t i = 0; i < n; i++, hn_iter_next(&it))
      row[i] *= inverse * hn_get_f64(call->input[1], it.at[0]);
    hn_store_f64(call->output[0], o * n, row, n);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 4 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {{"axis", HONE_ATTR_INT, false, 0, 0},
                                       {"epsilon", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"stash_type", HONE_ATTR_INT, false, 0, 0},
                                       {0}};

HN_OP(rms_normalization) = {HN_OP_HEAD,       .op_type = "RMSNormalization", .since = 23,    HN_INPUTS(2, 2),
                            HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT,       .attrs = attrs, .infer = infer,
                            .cost = cost,     .reference = reference};
