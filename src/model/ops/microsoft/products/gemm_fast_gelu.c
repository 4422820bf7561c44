/* GemmFastGelu: Gelu by its tanh approximation of MatMul(x, w) + bias. */
#include "model/ops/microsoft/common/inner.h"

enum { X, W, BIAS };
extern const hone_op_desc hn_op_matmul;

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_inner product;
  hn_inner_begin(&product, io->node, &hn_op_matmul, 13);
  hone_infer view = *io;
  view.n_inputs = 2;
  hone_status s = hn_infer_same_dtype(io, X, BIAS, error);
  if (!s) s = hn_inner_infer(&view, &product, error);
  const hone_tensor_desc *w = io->input[W];
  return s ? s : hn_infer_vector(io, BIAS, w->rank > 0 ? w->dim[w->rank - 1] : HONE_DIM_UNKNOWN, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *x = io->input[X];
  const int64_t k = x->rank > 0 ? x->dim[x->rank - 1] : 0;
  hn_cost_macs(cost, k > 0 ? hn_known_count(io->output[0]) * (double)k : 0);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  const int64_t n = y->desc.rank ? y->desc.dim[y->desc.rank - 1] : 1, rows = n ? hn_count(y) / n : 0;
  hn_inner product;
  hn_inner_begin(&product, call->node, &hn_op_matmul, 13);
  const hone_status s = hn_inner_run(call, &product, call->input, 2, &y, 1, error);
  double *row = s ? NULL : hn_scratch(call, n, sizeof *row, error);
  if (!row) return s ? s : HONE_ERROR_MEMORY;
  for (int64_t r = 0; r < rows; r++) {
    hn_load_f64(row, y, r * n, n);
    for (int64_t i = 0; i < n; i++) {
      const double v = row[i] + (hn_call_has(call, BIAS) ? hn_get_f64(call->input[BIAS], i) : 0);
      row[i] = 0.5 * v * (1 + tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)));
    }
    hn_store_f64(y, r * n, row, n);
  }
  return HONE_OK;
}

HN_OP(gemm_fast_gelu) = {HONE_DESC_HEAD(hone_op_desc),
                         .domain = "com.microsoft",
                         .op_type = "GemmFastGelu",
                         .since = 1,
                         HN_INPUTS(2, 3),
                         HN_OUTPUTS(1, 1),
                         .types = HN_TYPES_FLOAT,
                         .infer = infer,
                         .cost = cost,
                         .reference = reference};
