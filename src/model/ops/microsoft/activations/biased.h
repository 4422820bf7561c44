/* Functions of x + bias, with one bias for each index of the last dimension. */
#ifndef HN_MODEL_OPS_MICROSOFT_BIASED_H
#define HN_MODEL_OPS_MICROSOFT_BIASED_H

#include "model/ops/common/bulk.h"
#include "model/ops/common/elementwise.h"

static inline hone_status hn_biased_infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hone_status s = hn_infer_same_dtype(io, 0, 1, error);
  if (!s && x->rank == 0 && hn_has_input(io, 1)) s = hn_op_bad(io->node, error, "the input has rank 0");
  if (!s) s = hn_infer_vector(io, 1, x->rank > 0 ? x->dim[x->rank - 1] : HONE_DIM_UNKNOWN, error);
  return s ? s : hn_infer_same(io, error);
}

/* loops: of x alone; biased: of x and its bias. */
static inline hone_status hn_biased_run(hone_call *call, const hn_unary_loops *loops,
                                        const hn_binary_loops *biased, hone_error *error) {
  const hone_tensor *x = call->input[0], *bias = hn_call_has(call, 1) ? call->input[1] : NULL;
  const hone_dtype t = x->desc.dtype;
  if (!bias) return hn_unary(call, loops, NULL, error);
  const hn_binary_loop loop = biased->of[t == HONE_DTYPE_F64 ? t : HONE_DTYPE_F32];
  return hn_binary_apply(call, loop, &x->desc, x->data, &bias->desc, bias->data, call->output[0], error);
}

#endif
