/* BiasSplitGelu: of x + bias the first half of each row, times Gelu of the second. */
#include "model/ops/microsoft/common/inner.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  const int64_t n = x->rank > 0 ? x->dim[x->rank - 1] : HONE_DIM_UNKNOWN;
  int64_t dims[HONE_MAX_RANK];
  hone_status s = hn_infer_same_dtype(io, 0, 1, error);
  if (!s && x->rank == 0) s = hn_op_bad(io->node, error, "the input has rank 0");
  if (!s && n >= 0 && n % 2)
    s = hn_op_bad(io->node, error, "%lld values a row have no two halves", (long long)n);
  if (!s) s = hn_infer_vector(io, 1, n, error);
  if (s) return s;
  for (int32_t i = 0; i < x->rank; i++) dims[i] = i == x->rank - 1 && n >= 0 ? n / 2 : x->dim[i];
  hn_infer_set(io, 0, x->dtype, x->rank, dims);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 10 * hn_known_count(io->output[0]));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t n = x->desc.dim[x->desc.rank - 1], half = n / 2, rows = n ? hn_count(x) / n : 0;
  const double *bias = hn_all_f64(call, call->input[1], error);
  double *row = bias ? hn_scratch(call, n, sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    hn_load_f64(row, x, r * n, n);
    for (int64_t i = 0; i < half; i++) {
      const double gate = row[half + i] + bias[half + i];
      row[i] = (row[i] + bias[i]) * 0.5 * gate * (1 + erf(gate * 0.70710678118654752440));
    }
    hn_store_f64(call->output[0], r * half, row, half);
  }
  return HONE_OK;
}

HN_OP(bias_split_gelu) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "BiasSplitGelu",
                          .since = 1,
                          HN_INPUTS(2, 2),
                          HN_OUTPUTS(1, 1),
                          .types = HN_TYPES_FLOAT,
                          .infer = infer,
                          .cost = cost,
                          .reference = reference};
