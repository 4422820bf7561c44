/* LinearAttentionGate: decay = scale softplus(a + bias), a bias and a scale a head, and beta = sigmoid(b). */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/common/convert.h"

enum { A, BIAS, SCALE, RATE };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[A];
  const int64_t heads = a->rank > 0 ? a->dim[a->rank - 1] : -1;
  hone_status s = HONE_OK;
  if (a->rank >= 0 && a->rank != 3) s = hn_op_bad(io->node, error, "a has rank %d, not 3", (int)a->rank);
  for (uint32_t i = BIAS; i <= SCALE && !s; i++) {
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_F32), error);
    if (!s) s = hn_infer_vector(io, i, heads, error);
  }
  if (!s) s = hn_infer_same_dtype(io, A, RATE, error);
  if (!s && a->rank == 3) s = hn_infer_dims(io, RATE, "b", 3, a->dim, error);
  if (!s && io->n_outputs > 1 && io->output[1] && !hn_has_input(io, RATE))
    s = hn_op_bad(io->node, error, "beta is made of b, which is left out");
  if (!s) hn_infer_set(io, 0, a->dtype, a->rank, a->dim);
  if (!s) hn_infer_set(io, 1, a->dtype, a->rank, a->dim);
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *a = call->input[A];
  const float *bias = call->input[BIAS]->data, *scale = call->input[SCALE]->data;
  const int64_t heads = a->desc.dim[2];
  hone_tensor *beta = call->n_outputs > 1 ? call->output[1] : NULL;
  for (int64_t i = 0, n = hn_count(a); i < n; i++) {
    const hone_status s = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (s) return s;
    const double v = hn_get_f64(a, i) + bias[i % heads];
    if (call->output[0])
      hn_set_f64(call->output[0], i, scale[i % heads] * (v > 0 ? v + log1p(exp(-v)) : log1p(exp(v))));
    if (beta) hn_set_f64(beta, i, 1 / (1 + exp(-hn_get_f64(call->input[RATE], i))));
  }
  return HONE_OK;
}

HN_OP(linear_attention_gate) = {HONE_DESC_HEAD(hone_op_desc),
                                .domain = "com.microsoft",
                                .op_type = "LinearAttentionGate",
                                .since = 1,
                                HN_INPUTS(3, 4),
                                HN_OUTPUTS(1, 2),
                                .types = HN_TYPES_FLOAT,
                                .infer = infer,
                                .reference = reference};
