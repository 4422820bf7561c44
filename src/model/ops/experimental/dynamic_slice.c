/* DynamicSlice: Slice as ONNX has it at opset 10, without steps; what that grew out of. */
#include "model/ops/microsoft/common/inner.h"

extern const hone_op_desc hn_op_slice;

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_inner n;
  hn_inner_begin(&n, io->node, &hn_op_slice, 10);
  return hn_inner_infer(io, &n, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hn_inner n;
  hn_inner_begin(&n, call->node, &hn_op_slice, 10);
  return hn_inner_run(call, &n, call->input, call->n_inputs, call->output, 1, error);
}

HN_OP(dynamic_slice) = {HN_OP_HEAD,
                        .op_type = "DynamicSlice",
                        .since = 1,
                        .until = 9,
                        .flags = HONE_OP_MOVE,
                        HN_INPUTS(3, 4),
                        HN_OUTPUTS(1, 1),
                        .types = HN_TYPES_ALL,
                        .infer = infer,
                        .reference = reference,
                        .host_inputs = 1u << 1 | 1u << 2 | 1u << 3};
