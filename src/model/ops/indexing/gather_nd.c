/* GatherND: the slices of the data that tuples of indices name. */
#include "model/ops/indexing/tuples.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *index = io->input[1];
  int64_t n, batch = hone_node_int(io->node, "batch_dims", 0);
  hone_status status = hn_tuples_infer(io, batch, &n, error);
  if (status) return status;
  hone_tensor_desc y = {.rank = -1};
  if (n >= 0) {
    int64_t rank = index->rank - 1 + x->rank - batch - n;
    if (rank > HONE_MAX_RANK) return hn_op_refuse(io->node, error, "rank %lld", (long long)rank);
    y.rank = 0;
    for (int32_t i = 0; i < index->rank - 1; i++) y.dim[y.rank++] = index->dim[i];
    for (int64_t i = batch + n; i < x->rank; i++) y.dim[y.rank++] = x->dim[i];
  }
  hn_infer_set(io, 0, x->dtype, y.rank, y.dim);
  return HONE_OK;
}

static hone_status visit(hone_call *call, void *context, int64_t place, int64_t at, int64_t slice,
                         hone_error *error) {
  (void)context, (void)error;
  size_t size = hone_dtype_size(call->input[0]->desc.dtype), bytes = (size_t)slice * size;
  if (bytes)
    memcpy((char *)call->output[0]->data + (size_t)place * bytes,
           (const char *)call->input[0]->data + (size_t)at * size, bytes);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_tuples_run(call, hone_node_int(call->node, "batch_dims", 0), visit, NULL, error);
}

static const hone_attr_desc attrs[] = {{.name = "batch_dims", .type = HONE_ATTR_INT, .since = 12}, {0}};

HN_OP(gather_nd) = {HN_OP_HEAD,      .op_type = "GatherND", .since = 11,           .flags = HONE_OP_MOVE,
                    HN_INPUTS(2, 2), HN_OUTPUTS(1, 1),      .types = HN_TYPES_ALL, .attrs = attrs,
                    .infer = infer,  .reference = reference};
