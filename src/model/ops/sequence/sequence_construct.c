/* SequenceConstruct: the inputs, in their order. */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_dtype dtype = HONE_DTYPE_NONE;
  for (uint32_t i = 0; i < io->n_inputs; i++) {
    if (!io->input[i]) return hn_op_bad(io->node, error, "input %u is left out", i);
    const hone_dtype d = io->input[i]->dtype;
    if (!hone_dtype_is_tensor(d)) return hn_op_bad(io->node, error, "input %u is %s", i, hone_dtype_name(d));
    if (dtype && d && d != dtype)
      return hn_op_bad(io->node, error, "input %u is %s, the ones before are %s", i, hone_dtype_name(d),
                       hone_dtype_name(dtype));
    if (d) dtype = d;
  }
  hn_infer_whole(io, HONE_SEQUENCE_OF(dtype));
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor **list = hn_items_room(call, call->n_inputs, error);
  for (uint32_t i = 0; list && i < call->n_inputs; i++)
    if (!(list[i] = hn_items_keep(call, call->input[i], error))) list = NULL;
  if (!list) return HONE_ERROR_MEMORY;
  hn_items_give(call, call->n_inputs, list);
  return HONE_OK;
}

HN_OP(sequence_construct) = {HN_OP_HEAD,
                             .op_type = "SequenceConstruct",
                             .since = 11,
                             .flags = HONE_OP_MOVE | HONE_OP_ITEMS,
                             HN_INPUTS(1, HONE_VARIADIC),
                             HN_OUTPUTS(1, 1),
                             .infer = infer,
                             .reference = reference};
