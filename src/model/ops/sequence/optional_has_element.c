/* OptionalHasElement: is there anything? A tensor or sequence is, an input that is left out is not. */
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  hn_infer_whole(io, HONE_DTYPE_BOOL);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  const hone_tensor *x = hn_call_has(call, 0) ? call->input[0] : NULL;
  hn_set_i64(call->output[0], 0, x && (!(x->desc.dtype & HONE_OPTIONAL) || hn_items(x)->count));
  return HONE_OK;
}

HN_OP(optional_has_element) = {HN_OP_HEAD,      .op_type = "OptionalHasElement",
                               .since = 15,     .flags = HONE_OP_MOVE | HONE_OP_ITEMS,
                               HN_INPUTS(0, 1), HN_OUTPUTS(1, 1),
                               .infer = infer,  .reference = reference};
