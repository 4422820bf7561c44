/* OptionalGetElement: what is in an optional; a tensor or sequence is itself. */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  const hone_tensor_desc *x = io->input[0];
  const hone_dtype d = (hone_dtype)(x->dtype & ~(unsigned)HONE_OPTIONAL);
  if (!hone_dtype_is_tensor(d))
    hn_infer_whole(io, d);
  else
    hn_infer_set(io, 0, d, d == x->dtype ? x->rank : -1, x->dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  if (x->desc.dtype & HONE_OPTIONAL) {
    if (!hn_items(x)->count) return hn_op_bad(call->node, error, "the optional is empty");
    x = hn_items(x)->item[0];
  }
  return hn_items_take(call, x, error);
}

HN_OP(optional_get_element) = {
    HN_OP_HEAD,      .op_type = "OptionalGetElement",
    .since = 15,     .flags = HONE_OP_MOVE | HONE_OP_ITEMS | HONE_OP_DATA_DEPENDENT,
    HN_INPUTS(1, 1), HN_OUTPUTS(1, 1),
    .infer = infer,  .reference = reference};
