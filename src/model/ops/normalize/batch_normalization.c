/* BatchNormalization: y = scale (x - mean) / sqrt(var + epsilon) + bias per channel. In training mean and var
 * are the batch's own, and outputs are the running ones and, up to opset 13, the batch's mean and what 1 is
 * divided by its standard deviation. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/elementwise.h"
#include "model/ops/normalize/moments.h"
#include "model/ops/normalize/training.h"

/* Up to opset 8 spatial = 0 asks for statistics of every activation: parameters are [C, D1...]. */
static bool per_activation(const hone_node *node) {
  return hone_node_opset(node) < 9 && hone_node_int(node, "spatial", 1) == 0;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int32_t opset = hone_node_opset(io->node);
  int64_t channels = x->rank > 1 ? x->dim[1] : x->rank == 1 ? 1 : HONE_DIM_UNKNOWN;
  if (x->rank == 0) return hn_op_bad(io->node, error, "the input has rank 0");
  /* Left out, the outputs say it: Y alone is the test mode's. ONNX's converter and OpenVINO read it so. */
  if (opset < 7 && (io->n_outputs > 1 || !hone_node_int(io->node, "is_test", 1)))
    return hn_op_refuse(io->node, error, "training (is_test is 0)");
  if (per_activation(io->node) && hn_batch_norm_trains(io->node))
    return hn_op_refuse(io->node, error, "training of every activation");
  for (uint32_t i = 1; i < 5; i++) {
    hone_status s = hn_infer_dtype_in(io, i, HN_TYPES_FLOAT, error);
    if (!s && !per_activation(io->node)) s = hn_infer_vector(io, i, channels, error);
    if (s) return s;
    const hone_tensor_desc *p = io->input[i];
    if (!per_activation(io->node) || p->rank < 0 || x->rank < 0) continue;
    bool fits = p->rank == x->rank - 1;
    for (int32_t d = 0; fits && d < p->rank; d++)
      fits = p->dim[d] < 0 || x->dim[d + 1] < 0 || p->dim[d] == x->dim[d + 1];
    if (!fits) return hn_op_bad(io->node, error, "input %u does not have the shape of one sample", i);
  }
  hn_infer_set(io, 0, x->dtype, x->rank, x->dim);
  if (opset >= 14 && io->n_outputs > 3)
    return hn_op_bad(io->node, error, "%u outputs, at most 3", io->n_outputs);
  if (io->n_outputs > 1 && !hn_batch_norm_trains(io->node))
    for (uint32_t i = 1; i < io->n_outputs; i++)
      if (io->output[i]) return hn_op_bad(io->node, error, "output %u exists only with training_mode", i);
  for (uint32_t i = 1; i < io->n_outputs; i++)
    if (io->output[i]) hn_infer_set(io, i, io->input[i < 3 ? 2 + i : i]->dtype, 1, &channels);
  return HONE_OK;
}

/* Statistics of one channel over the batch, and the running ones: old * momentum + new * (1 - momentum). */
static void train(hone_call *call, int64_t c, const double *column, int64_t n, double *mean, double *var) {
  const hone_dtype type = hn_stash(call->node, call->input[0]->desc.dtype);
  double momentum = hone_node_float(call->node, "momentum", 0.9f), now[2];
  now[0] = *mean = hn_mean(column, n, type);
  now[1] = *var = hn_variance(column, n, *mean, type);
  for (uint32_t i = 0; i < 2; i++)
    if (i + 1 < call->n_outputs && call->output[i + 1])
      hn_set_f64(call->output[i + 1], c,
                 hn_get_f64(call->input[3 + i], c) * momentum + now[i] * (1 - momentum));
  const double epsilon = hone_node_float(call->node, "epsilon", 1e-5f);
  if (call->n_outputs > 3 && call->output[3]) hn_set_f64(call->output[3], c, *mean);
  if (call->n_outputs > 4 && call->output[4]) hn_set_f64(call->output[4], c, 1 / sqrt(*var + epsilon));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const double epsilon = hone_node_float(call->node, "epsilon", 1e-5f);
  int32_t rank = x->desc.rank;
  int64_t batch = x->desc.dim[0], channels = rank > 1 ? x->desc.dim[1] : 1,
          inner = hn_dims(&x->desc, 2, rank);
  if (per_activation(call->node)) {
    channels *= inner;
    inner = 1;
  }
  double *column = hn_scratch(call, batch * inner, sizeof *column, error);
  if (!column) return HONE_ERROR_MEMORY;
  for (int64_t c = 0; c < channels; c++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    for (int64_t n = 0; n < batch; n++) hn_load_f64(column + n * inner, x, (n * channels + c) * inner, inner);
    double scale = hn_get_f64(call->input[1], c), bias = hn_get_f64(call->input[2], c);
    double mean = hn_get_f64(call->input[3], c), var = hn_get_f64(call->input[4], c);
    if (hn_batch_norm_trains(call->node)) train(call, c, column, batch * inner, &mean, &var);
    double factor = scale / sqrt(var + epsilon);
    for (int64_t i = 0; i < batch * inner; i++) column[i] = (column[i] - mean) * factor + bias;
    for (int64_t n = 0; n < batch && call->output[0]; n++)
      hn_store_f64(call->output[0], (n * channels + c) * inner, column + n * inner, inner);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 2 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {{"epsilon", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"momentum", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"spatial", HONE_ATTR_INT, false, 0, 8},
                                       {"is_test", HONE_ATTR_INT, false, 0, 6},
                                       {"training_mode", HONE_ATTR_INT, false, 14, 0},
                                       HN_CONSUMED_INPUTS,
                                       {0}};

HN_OP(batch_normalization) = {HN_OP_HEAD,
                              .op_type = "BatchNormalization",
                              .since = 1,
                              HN_INPUTS(5, 5),
                              HN_OUTPUTS(1, 5),
                              .types = HN_TYPES_FLOAT,
                              .attrs = attrs,
                              .infer = infer,
                              .cost = cost,
                              .reference = reference,
                              .layouts = HONE_LAST_ALLOWED};
