/* Optional: the input as an optional; without one an empty optional of the type that attribute `type` says.
 */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_dtype d = hn_has_input(io, 0) ? io->input[0]->dtype
                                           : (hone_dtype)hone_node_int(io->node, "type", HONE_DTYPE_NONE);
  if (!hn_has_input(io, 0) && !d) return hn_op_bad(io->node, error, "it has neither an input nor a type");
  if (d & HONE_OPTIONAL) return hn_op_refuse(io->node, error, "an optional of %s", hone_dtype_name(d));
  hn_infer_whole(io, HONE_OPTIONAL_OF(d));
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const bool there = hn_call_has(call, 0);
  const hone_tensor **list = hn_items_room(call, 1, error);
  if (!list || (there && !(list[0] = hn_items_keep(call, call->input[0], error)))) return HONE_ERROR_MEMORY;
  hn_items_give(call, there, list);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "type", .type = HONE_ATTR_TYPE}, {0}};

HN_OP(optional) = {HN_OP_HEAD,
                   .op_type = "Optional",
                   .since = 15,
                   .flags = HONE_OP_MOVE | HONE_OP_ITEMS,
                   HN_INPUTS(0, 1),
                   HN_OUTPUTS(1, 1),
                   .attrs = attrs,
                   .infer = infer,
                   .reference = reference};
