/* SequenceLength: how many tensors there are. */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status status = hn_infer_sequence(io, 0, error);
  if (status == HONE_OK) hn_infer_whole(io, HONE_DTYPE_I64);
  return status;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_items *x = hn_sequence(call, 0, error);
  if (!x) return HONE_ERROR_INPUT;
  hn_set_i64(call->output[0], 0, (int64_t)x->count);
  return HONE_OK;
}

HN_OP(sequence_length) = {HN_OP_HEAD,      .op_type = "SequenceLength",
                          .since = 11,     .flags = HONE_OP_MOVE | HONE_OP_ITEMS,
                          HN_INPUTS(1, 1), HN_OUTPUTS(1, 1),
                          .infer = infer,  .reference = reference};
