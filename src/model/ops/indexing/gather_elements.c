/* GatherElements: y[i][j]... = x with the index along one axis replaced by indices[i][j]... */
#include "model/ops/common/bulk.h"
#include "model/ops/indexing/elements.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *index = io->input[1];
  hone_status status = hn_elements_infer(io, 1, error);
  if (!status) hn_infer_set(io, 0, io->input[0]->dtype, index->rank, index->dim);
  return status;
}

static hone_status visit(hone_call *call, void *context, int64_t place, int64_t at, hone_error *error) {
  (void)context, (void)error;
  size_t size = hone_dtype_size(call->input[0]->desc.dtype);
  memcpy((char *)call->output[0]->data + (size_t)place * size,
         (const char *)call->input[0]->data + (size_t)at * size, size);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_elements_run(call, visit, NULL, error);
}

static const hone_attr_desc attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

HN_OP(gather_elements) = {HN_OP_HEAD,
                          .op_type = "GatherElements",
                          .since = 11,
                          .flags = HONE_OP_MOVE,
                          HN_INPUTS(2, 2),
                          HN_OUTPUTS(1, 1),
                          .types = HN_TYPES_ALL,
                          .attrs = attrs,
                          .infer = infer,
                          .reference = reference};
