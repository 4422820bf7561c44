/* GatherND, as ONNX has it at opset 11, and with indices of i32, too. */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/common/inner.h"

extern const hone_op_desc hn_op_gather_nd;

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_inner n;
  hn_inner_same(&n, io->node, &hn_op_gather_nd, 11);
  hone_tensor_desc index = *io->input[1];
  if (index.dtype == HONE_DTYPE_I32) index.dtype = HONE_DTYPE_I64;
  const hone_tensor_desc *const in[] = {io->input[0], &index};
  hone_infer view = *io;
  view.input = in;
  return hn_inner_infer(&view, &n, error);
}

static void cost(const hone_infer *io, hone_cost *c) {
  hn_inner n;
  hn_inner_same(&n, io->node, &hn_op_gather_nd, 11);
  hn_inner_cost(io, &n, c);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *index = call->input[1];
  hn_inner n;
  hone_tensor wide;
  hn_inner_same(&n, call->node, &hn_op_gather_nd, 11);
  if (index->desc.dtype == HONE_DTYPE_I32) {
    if (!hn_inner_tensor(call, HONE_DTYPE_I64, index->desc.rank, index->desc.dim, &wide, error))
      return HONE_ERROR_MEMORY;
    hn_read_i64(wide.data, index->data, HONE_DTYPE_I32, 0, hn_count(index));
    index = &wide;
  }
  const hone_tensor *const in[] = {call->input[0], index};
  return hn_inner_run(call, &n, in, 2, call->output, call->n_outputs, error);
}

HN_OP(ms_gather_nd) = {HONE_DESC_HEAD(hone_op_desc),
                       .domain = "com.microsoft",
                       .op_type = "GatherND",
                       .since = 1,
                       .flags = HONE_OP_MOVE,
                       HN_INPUTS(2, 2),
                       HN_OUTPUTS(1, 1),
                       .types = HN_TYPES_ALL,
                       .infer = infer,
                       .cost = cost,
                       .reference = reference};
