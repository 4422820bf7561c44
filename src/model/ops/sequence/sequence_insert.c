/* SequenceInsert: one tensor more, before a position; at the end without one. */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status status = hn_infer_sequence(io, 0, error);
  if (status == HONE_OK) status = hn_infer_position(io, 2, error);
  if (status != HONE_OK) return status;
  const hone_dtype in = hone_dtype_element(io->input[0]->dtype), d = io->input[1]->dtype;
  if (!hone_dtype_is_tensor(d) || (in && d && in != d))
    return hn_op_bad(io->node, error, "%s is inserted into %s", hone_dtype_name(d),
                     hone_dtype_name(io->input[0]->dtype));
  hn_infer_whole(io, HONE_SEQUENCE_OF(in ? in : d));
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_items *x = hn_sequence(call, 0, error);
  size_t at;
  if (!x) return HONE_ERROR_INPUT;
  hone_status status = hn_position(call, 2, x->count, x->count, x->count, &at, error);
  if (status != HONE_OK) return status;
  const hone_tensor **list = hn_items_room(call, x->count + 1, error);
  if (!list || !(list[at] = hn_items_keep(call, call->input[1], error))) return HONE_ERROR_MEMORY;
  for (size_t i = 0; i < x->count; i++) list[i + (i >= at)] = x->item[i];
  hn_items_give(call, x->count + 1, list);
  return HONE_OK;
}

HN_OP(sequence_insert) = {HN_OP_HEAD,      .op_type = "SequenceInsert",
                          .since = 11,     .flags = HONE_OP_MOVE | HONE_OP_ITEMS,
                          HN_INPUTS(2, 3), HN_OUTPUTS(1, 1),
                          .infer = infer,  .reference = reference};
