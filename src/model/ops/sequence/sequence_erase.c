/* SequenceErase: without the tensor at a position; without the last one when there is no position. */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status status = hn_infer_sequence(io, 0, error);
  if (status == HONE_OK) status = hn_infer_position(io, 1, error);
  if (status == HONE_OK) hn_infer_whole(io, io->input[0]->dtype);
  return status;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_items *x = hn_sequence(call, 0, error);
  size_t at;
  if (!x) return HONE_ERROR_INPUT;
  if (!x->count) return hn_op_bad(call->node, error, "the sequence is empty");
  hone_status status = hn_position(call, 1, x->count, x->count - 1, x->count - 1, &at, error);
  if (status != HONE_OK) return status;
  const hone_tensor **list = hn_items_room(call, x->count - 1, error);
  if (!list) return HONE_ERROR_MEMORY;
  for (size_t i = 0; i < x->count; i++)
    if (i != at) list[i - (i > at)] = x->item[i];
  hn_items_give(call, x->count - 1, list);
  return HONE_OK;
}

HN_OP(sequence_erase) = {
    HN_OP_HEAD,      .op_type = "SequenceErase", .since = 11,    .flags = HONE_OP_MOVE | HONE_OP_ITEMS,
    HN_INPUTS(1, 2), HN_OUTPUTS(1, 1),           .infer = infer, .reference = reference};
