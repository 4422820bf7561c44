/* LRN: x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta. */
#include "model/ops/common/bulk.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t size = hone_node_int(io->node, "size", 0);
  int32_t rank = io->input[0]->rank;
  if (size < 1 || size > INT32_MAX) return hn_op_bad(io->node, error, "size is %lld", (long long)size);
  if (rank >= 0 && rank < 2) return hn_op_bad(io->node, error, "the input has rank %d", (int)rank);
  return hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  int64_t size = hone_node_int(call->node, "size", 1), before = (size - 1) / 2, after = size - 1 - before;
  const double alpha = hone_node_float(call->node, "alpha", 1e-4f),
               beta = hone_node_float(call->node, "beta", 0.75f);
  const double bias = hone_node_float(call->node, "bias", 1);
  int64_t batch = x->desc.dim[0], channels = x->desc.dim[1], n = hn_dims(&x->desc, 2, x->desc.rank);
  double *data = hn_scratch(call, channels * n, sizeof *data, error);
  double *row = data ? hn_scratch(call, n, sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t b = 0; b < batch; b++) {
    hn_load_f64(data, x, b * channels * n, channels * n);
    for (int64_t c = 0; c < channels; c++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      for (int64_t i = 0; i < n; i++) row[i] = 0;
      for (int64_t k = hn_max(0, c - before); k <= hn_min(channels - 1, c + after); k++)
        for (int64_t i = 0; i < n; i++) row[i] += data[k * n + i] * data[k * n + i];
      for (int64_t i = 0; i < n; i++)
        row[i] = data[c * n + i] / pow(bias + alpha / (double)size * row[i], beta);
      hn_store_f64(call->output[0], (b * channels + c) * n, row, n);
    }
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, hn_known_count(io->input[0]) * (2 * (double)hone_node_int(io->node, "size", 1) + 4));
}

static const hone_attr_desc attrs[] = {{"alpha", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"beta", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"bias", HONE_ATTR_FLOAT, false, 0, 0},
                                       {"size", HONE_ATTR_INT, true, 0, 0},
                                       {0}};

HN_OP(lrn) = {HN_OP_HEAD,
              .op_type = "LRN",
              .since = 1,
              HN_INPUTS(1, 1),
              HN_OUTPUTS(1, 1),
              .types = HN_TYPES_FLOAT,
              .attrs = attrs,
              .infer = infer,
              .cost = cost,
              .reference = reference,
              .layouts = HONE_LAST_ALLOWED};
