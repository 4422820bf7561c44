/* RestorePadding: tokens back at their places (token_offset), with zeros where there was padding. */
#include "model/ops/microsoft/common/inner.h"

enum { X, OFFSETS };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *at = io->input[OFFSETS];
  const hone_status s = hn_infer_dtype_in(io, OFFSETS, HONE_TYPES(HONE_DTYPE_I32), error);
  if (s) return s;
  if ((x->rank >= 0 && x->rank != 2) || (at->rank >= 0 && at->rank != 2))
    return hn_op_bad(io->node, error, "the input has rank %d and token_offset %d, both must be 2",
                     (int)x->rank, (int)at->rank);
  hn_infer_set(io, 0, x->dtype, 3, (const int64_t[]){hn_dim(at, 0), hn_dim(at, 1), hn_dim(x, 1)});
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  const int64_t tokens = x->desc.dim[0], all = hn_count(call->input[OFFSETS]);
  const int32_t *at = call->input[OFFSETS]->data;
  const size_t row = (size_t)x->desc.dim[1] * hone_dtype_size(x->desc.dtype);
  if (tokens > all)
    return hn_op_bad(call->node, error, "%lld tokens for %lld places", (long long)tokens, (long long)all);
  if (all && row) memset(call->output[0]->data, 0, (size_t)all * row);
  for (int64_t t = 0; t < tokens && row; t++) {
    if (at[t] < 0 || at[t] >= all)
      return hn_op_bad(call->node, error, "place %d is not among %lld", (int)at[t], (long long)all);
    memcpy((char *)call->output[0]->data + (size_t)at[t] * row, (const char *)x->data + (size_t)t * row, row);
  }
  return HONE_OK;
}

HN_OP(restore_padding) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "RestorePadding",
                          .since = 1,
                          HN_INPUTS(2, 2),
                          HN_OUTPUTS(1, 1),
                          .types = HN_TYPES_FLOAT,
                          .infer = infer,
                          .reference = reference};
