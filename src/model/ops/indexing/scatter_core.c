/* ScatterElements and its first name, Scatter. */
#include "model/ops/indexing/scatter_core.h"
#include "model/ops/common/bulk.h"
#include "model/ops/indexing/combine.h"
#include "model/ops/indexing/elements.h"

hone_status hn_scatter_infer(const hone_infer *io, hone_error *error) {
  hn_combine how;
  hone_status status = hn_elements_infer(io, 1, error);
  if (!status) status = hn_infer_same_dtype(io, 0, 2, error);
  if (!status) status = hn_combine_of(io->node, &how, error);
  if (status) return status;
  const hone_tensor_desc *index = io->input[1], *update = io->input[2];
  if (hone_desc_known(index) && hone_desc_known(update) && !hone_desc_same_dims(index, update))
    return hn_op_bad(io->node, error, "indices and updates differ in shape");
  return hn_infer_same(io, error);
}

static hone_status visit(hone_call *call, void *context, int64_t place, int64_t at, hone_error *error) {
  hone_dtype t = call->input[0]->desc.dtype;
  size_t size = hone_dtype_size(t);
  return hn_combine_apply(call->node, *(const hn_combine *)context, t,
                          (char *)call->output[0]->data + (size_t)at * size,
                          (const char *)call->input[2]->data + (size_t)place * size, 1, error);
}

hone_status hn_scatter_run(hone_call *call, hone_error *error) {
  hn_combine how;
  hone_status status = hn_combine_of(call->node, &how, error);
  if (status) return status;
  hn_copy_elements(call->output[0]->data, call->input[0]->data, hn_count(call->input[0]),
                   call->input[0]->desc.dtype);
  return hn_elements_run(call, visit, &how, error);
}
