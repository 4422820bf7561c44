/* LayerNormalization: normalises over the dimensions from `axis` on, then scales and shifts. Mean and
 * 1/sqrt(var + eps) are optional outputs, in f32 or bf16 (stash_type). */
#include "model/ops/common/bulk.h"
#include "model/ops/normalize/moments.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t stash = hone_node_int(io->node, "stash_type", HONE_DTYPE_F32), dims[HONE_MAX_RANK];
  int32_t axis = 0;
  hone_status s = HONE_OK;
  if (stash != HONE_DTYPE_F32 && stash != HONE_DTYPE_BF16)
    return hn_op_refuse(io->node, error, "stash_type %lld", (long long)stash);
  if (x->rank == 0) return hn_op_bad(io->node, error, "the input has rank 0");
  if (x->rank > 0 && (s = hn_axis(hone_node_int(io->node, "axis", -1), x->rank, &axis, error))) return s;
  for (uint32_t i = 1; i < 3; i++) {
    if ((s = hn_infer_same_dtype(io, 0, i, error))) return s;
    if (!hn_has_input(io, i) || x->rank < 0) continue;
    /* Scale and bias broadcast to the normalised dimensions, or to the whole input. */
    hone_tensor_desc full = *x;
    if ((s = hn_broadcast_dims(&full, io->input[i], error))) return s;
    for (int32_t d = 0; d < full.rank; d++)
      if (full.rank != x->rank || (full.dim[d] >= 0 && x->dim[d] >= 0 && full.dim[d] != x->dim[d]))
        return hn_op_bad(io->node, error, "input %u does not broadcast to the input", i);
  }
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  for (int32_t d = 0; d < x->rank; d++) dims[d] = d < axis ? x->dim[d] : 1;
  for (uint32_t i = 1; i < io->n_outputs; i++) hn_infer_set(io, i, (hone_dtype)stash, x->rank, dims);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const double epsilon = hone_node_float(call->node, "epsilon", 1e-5f);
  const hone_dtype type = hn_stash(call->node, x->desc.dtype);
  int32_t axis = 0, rank = x->desc.rank;
  hone_status s = hn_axis(hone_node_int(call->node, "axis", -1), rank, &axis, error);
  if (s) return s;
  int64_t outer = hn_dims(&x->desc, 0, axis), inner = hn_dims(&x->desc, axis, rank);
  double *row = hn_scratch(call, inner, sizeof *row, error);
  if (!row) return HONE_ERROR_MEMORY;
  bool biased = hn_call_has(call, 2);
  hn_iter it;
  hn_iter_init(&it, &x->desc, &call->input[1], biased ? 2 : 1);
  for (int64_t o = 0; o < outer; o++) {
    hn_load_f64(row, x, o * inner, inner);
    double mean = hn_mean(row, inner, type),
           inverse = 1 / sqrt(hn_variance(row, inner, mean, type) + epsilon);
    for (int64_t i = 0; i < inner; i++, hn_iter_next(&it))
      row[i] = (row[i] - mean) * inverse * hn_get_f64(call->input[1], it.at[0]) +
               (biased ? hn_get_f64(call->input[2], it.at[1]) : 0);
    if (call->output[0]) hn_store_f64(call->output[0], o * inner, row, inner);
    if (call->n_outputs > 1 && call->output[1]) hn_set_f64(call->output[1], o, mean);
    if (call->n_outputs > 2 && call->output[2]) hn_set_f64(call->output[2], o, inverse);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 8 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {{"axis", HONE_ATTR_INT, false, 0, 0},
                                       {"epsilon", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"stash_type", HONE_ATTR_INT, false, 0, 0},
                                       {0}};

HN_OP(layer_normalization) = {
    HN_OP_HEAD,       .op_type = "LayerNormalization", .since = 1,     HN_INPUTS(2, 3),
    HN_OUTPUTS(1, 3), .types = HN_TYPES_FLOAT,         .attrs = attrs, .infer = infer,
    .cost = cost,     .reference = reference};
