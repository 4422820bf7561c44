/* SequenceAt: the tensor at a position. */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status status = hn_infer_sequence(io, 0, error);
  if (status == HONE_OK) status = hn_infer_position(io, 1, error);
  if (status == HONE_OK) hn_infer_set(io, 0, hone_dtype_element(io->input[0]->dtype), -1, NULL);
  return status;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_items *x = hn_sequence(call, 0, error);
  size_t at;
  if (!x) return HONE_ERROR_INPUT;
  if (!x->count) return hn_op_bad(call->node, error, "the sequence is empty");
  hone_status status = hn_position(call, 1, x->count, x->count - 1, 0, &at, error);
  return status == HONE_OK ? hn_items_take(call, x->item[at], error) : status;
}

HN_OP(sequence_at) = {HN_OP_HEAD,      .op_type = "SequenceAt",
                      .since = 11,     .flags = HONE_OP_MOVE | HONE_OP_ITEMS | HONE_OP_DATA_DEPENDENT,
                      HN_INPUTS(2, 2), HN_OUTPUTS(1, 1),
                      .infer = infer,  .reference = reference};
