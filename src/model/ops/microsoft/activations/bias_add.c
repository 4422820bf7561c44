/* BiasAdd: x + bias + skip, with a bias for each index of the last dimension. */
#include "model/ops/microsoft/common/inner.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hone_status s = hn_infer_same_dtype(io, 0, 1, error);
  if (!s) s = hn_infer_same_dtype(io, 0, 2, error);
  if (!s && x->rank == 0) s = hn_op_bad(io->node, error, "the input has rank 0");
  if (!s) s = hn_infer_vector(io, 1, x->rank > 0 ? x->dim[x->rank - 1] : HONE_DIM_UNKNOWN, error);
  if (!s && x->rank > 0) s = hn_infer_dims(io, 2, "skip", x->rank, x->dim, error);
  return s ? s : hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t n = x->desc.dim[x->desc.rank - 1], rows = n ? hn_count(x) / n : 0;
  const double *bias = hn_all_f64(call, call->input[1], error);
  double *row = bias ? hn_scratch(call, n, sizeof *row, error) : NULL,
         *skip = row ? hn_scratch(call, n, sizeof *skip, error) : NULL;
  if (!skip) return HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    hn_load_f64(row, x, r * n, n);
    hn_load_f64(skip, call->input[2], r * n, n);
    for (int64_t i = 0; i < n; i++) row[i] += bias[i] + skip[i];
    hn_store_f64(call->output[0], r * n, row, n);
  }
  return HONE_OK;
}

HN_OP(bias_add) = {HONE_DESC_HEAD(hone_op_desc),
                   .domain = "com.microsoft",
                   .op_type = "BiasAdd",
                   .since = 1,
                   HN_INPUTS(3, 3),
                   HN_OUTPUTS(1, 1),
                   .types = HN_TYPES_FLOAT,
                   .infer = infer,
                   .reference = reference};
