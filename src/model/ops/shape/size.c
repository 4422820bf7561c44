/* Size: the number of elements as i64. */
#include "model/ops/common/op.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  hn_infer_set(io, 0, HONE_DTYPE_I64, 0, NULL);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  (void)error;
  *(int64_t *)call->output[0]->data = hn_count(call->input[0]);
  return HONE_OK;
}

HN_OP(size) = {HN_OP_HEAD,
               .op_type = "Size",
               .since = 1,
               .flags = HONE_OP_MOVE | HONE_OP_SHAPE_ONLY,
               HN_INPUTS(1, 1),
               HN_OUTPUTS(1, 1),
               .types = HN_TYPES_ALL | HN_TYPES_NARROW,
               .infer = infer,
               .reference = reference};
