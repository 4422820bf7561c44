/* ComplexMul and ComplexMulConj: products of complex numbers, whose parts are the last dimension. */
#ifndef HN_MODEL_OPS_MICROSOFT_COMPLEX_PRODUCT_H
#define HN_MODEL_OPS_MICROSOFT_COMPLEX_PRODUCT_H

#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

static inline hone_status hn_complex_infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[0];
  hone_status s = hn_infer_same_dtype(io, 0, 1, error);
  for (uint32_t i = 0; i < 2 && !s; i++) {
    const hone_tensor_desc *x = io->input[i];
    if (x->rank == 0 || (x->rank > 0 && x->dim[x->rank - 1] >= 0 && x->dim[x->rank - 1] != 2))
      s = hn_op_bad(io->node, error, "the last dimension of input %u does not hold two parts", i);
  }
  if (!s && y.rank >= 0 && io->input[1]->rank >= 0) s = hn_broadcast_dims(&y, io->input[1], error);
  if (!s) hn_infer_set(io, 0, y.dtype, io->input[1]->rank < 0 ? -1 : y.rank, y.dim);
  return s;
}

/* conjugate: of b. */
static inline hone_status hn_complex_run(hone_call *call, bool conjugate, hone_error *error) {
  hone_tensor *y = call->output[0];
  hn_iter it;
  hn_iter_init(&it, &y->desc, (const hone_tensor *const *)call->input, 2);
  for (int64_t i = 0; i < it.count; i += 2) {
    const hone_status s = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (s) return s;
    double a[2], b[2];
    hn_load_f64(a, call->input[0], it.at[0], 2);
    hn_load_f64(b, call->input[1], it.at[1], 2);
    if (conjugate) b[1] = -b[1];
    const double c[2] = {a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]};
    hn_store_f64(y, i, c, 2);
    hn_iter_next(&it);
    hn_iter_next(&it);
  }
  return HONE_OK;
}

#define HN_COMPLEX_PRODUCT_OP(unit, onnx, conjugate)                                                         \
  static hone_status reference(hone_call *call, hone_error *error) {                                         \
    return hn_complex_run(call, conjugate, error);                                                           \
  }                                                                                                          \
  HN_OP(unit) = {HONE_DESC_HEAD(hone_op_desc),                                                               \
                 .domain = "com.microsoft",                                                                  \
                 .op_type = onnx,                                                                            \
                 .since = 1,                                                                                 \
                 HN_INPUTS(2, 2),                                                                            \
                 HN_OUTPUTS(1, 1),                                                                           \
                 .types = HN_TYPES_FLOAT,                                                                    \
                 .infer = hn_complex_infer,                                                                  \
                 .reference = reference}

#endif
